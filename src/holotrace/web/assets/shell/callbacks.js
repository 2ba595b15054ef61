// The callbacks that run in the browser; `parts/browser_functions.py` lists their names.

import { current, forget, put, rangesOf, remember, searchOf } from "./address.js";
import * as schemes from "./scheme.js";
import { digitsOf, placeOf } from "./table_rows.js";

/** @typedef {import("../types.js").TableRow} TableRow */
/** @typedef {{ name: string }} Id */
/** @typedef {{ layout: { template: { layout: { paper_bgcolor: string } } } }} Figure */

const OF_A_RUN = ["ranks", "steps", "devices", "event", "at", "window", "top", "flags", "panel", "rows", "finding"];
const OF_A_PAGE = ["control", "event", "at", "find", "window", "top", "panel", "finding"];

const noUpdate = () => window.dash_clientside.no_update;

/** @param {string | string[] | null} value */
const textOf = (value) => (Array.isArray(value) ? rangesOf(value) : value || "");

/** @param {string} name */
const refreshGrid = (name) => {
  for (const box of document.querySelectorAll(".ag-root-wrapper")) {
    const element = box.closest("[id]");
    if (element?.id.includes(`"name":"${name}"`)) {
      window.dash_ag_grid.getApi?.(element.id)?.purgeInfiniteCache();
    }
  }
};

/**
 * Add defaults chosen by the server, such as the first run, to the address.
 * @param {URLSearchParams} params
 */
const rememberServed = (params) => {
  const elements = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-served]")]);
  for (const [key, value] of elements.map(({ dataset }) => (dataset.served ?? "").split("="))) {
    if (!params.has(key) && value) {
      params.set(key, value);
      remember(params);
    }
  }
};

let isChecked = false;

/** @param {Figure["layout"]["template"]} template */
const surfaceOf = (template) => template.layout.paper_bgcolor;

export const callbacks = {
  /**
   * Return the address that belongs to the values of the selectors. If the server drew the page for an address other
   * than the browser's, request the page again.
   * @param {(string | string[] | null)[]} values
   * @param {Id[]} ids
   * @param {string | undefined} drawn
   */
  select: (values, ids, drawn) => {
    const isDrawn = isChecked || drawn === window.location.search;
    isChecked = true;
    const params = current();
    rememberServed(params);
    const before = searchOf(params);
    /** @type {Record<string, string>} */
    const { run: chosenRun, span: chosenSpan, ...others } = Object.fromEntries(
      ids.map(({ name }, at) => [name, textOf(values[at])]),
    );
    const [run, span] = (params.get("run") ?? "").split("~");
    const wantedRun = chosenRun || run;
    const wantedSpan = wantedRun === run ? (chosenSpan ?? span) : "";
    const wanted = wantedSpan ? `${wantedRun}~${wantedSpan}` : wantedRun;
    if (wanted === (params.get("run") ?? "")) {
      Object.entries(others).forEach(([name, text]) => put(params, name, text));
    } else {
      forget(params, OF_A_RUN);
      put(params, "run", wanted);
    }
    const after = searchOf(params);
    return after === before && isDrawn ? noUpdate() : after;
  },

  /**
   * After a control of a table has changed, update the address, request the table's rows again, and return the table's
   * download links.
   * @param {string} search
   * @param {string} by
   * @param {string} top
   * @param {Id} id
   */
  table: (search, by, top, { name }) => {
    const params = current();
    put(params, `q.${name}`, search);
    put(params, `by.${name}`, by);
    put(params, `top.${name}`, top);
    remember(params);
    refreshGrid(name);
    return ["csv", "parquet"].map((form) => `download/${form}/${name}${searchOf(params)}`);
  },

  /**
   * Return a link that shows the event, time or name of the selected row on the timeline, and whether to hide the link.
   * @param {(TableRow[] | null | undefined)[]} selected
   */
  timeline: (selected) => {
    const [row] = selected.flatMap((rows) => rows ?? []);
    const option = row && placeOf(row);
    if (!option) {
      return ["?view=timeline", true];
    }
    const params = current();
    forget(params, OF_A_PAGE);
    put(params, "view", "timeline");
    put(params, ...option);
    put(params, "ranks", digitsOf(row, "rank") || params.get("ranks"));
    return [searchOf(params), false];
  },

  /**
   * Return the address of the page that compares the two ticked runs, and a hint for the user. If only one run is
   * ticked, each other run gets a link that compares it with the ticked run. The list shows newer runs first, so the
   * upper of the two runs is the test run, and the lower one is the control run.
   * @param {(boolean | undefined)[]} ticks
   * @param {Id[]} ids
   */
  compare: (ticks, ids) => {
    const ticked = ids.filter((_, at) => ticks[at]).map(({ name }) => name);
    const [test, control] = ticked;
    const hints = ["Tick a run to compare it with another one.", "Compare another run with the ticked one, or tick a second run.", ""];
    const hint = hints[ticked.length] ?? "Only two runs can be compared at once.";
    /** @param {string | undefined} one @param {string | undefined} other */
    const href = (one, other) => searchOf(new URLSearchParams({ view: "diff", run: one ?? "", control: other ?? "" }));
    const first = ids.findIndex(({ name }) => name === test);
    const links = ids.map(({ name }, at) => (at < first ? href(name, test) : href(test, name)));
    const classes = ids.map((_, at) => (ticked.length === 1 && at !== first ? "holotrace-compare-with" : "holotrace-hidden"));
    return [href(test, control), ticked.length === 2 ? "holotrace-compare" : "holotrace-hidden", hint, links, classes];
  },

  /**
   * Return the colour scheme after a click on the button that switches between light and dark.
   * @param {number | undefined} clicks
   * @param {string} scheme
   */
  scheme: (clicks, scheme) => {
    const next = clicks ? (scheme === "dark" ? "light" : "dark") : schemes.first();
    if (clicks) {
      schemes.store(next);
    }
    schemes.use(next);
    return next === scheme ? noUpdate() : next;
  },

  /**
   * Give the figures the template of the colour scheme.
   * @param {string} scheme
   * @param {Figure[]} figures
   * @param {Record<string, Figure["layout"]["template"]>} templates
   */
  figures: (scheme, figures, templates) =>
    figures.map((figure) =>
      surfaceOf(figure.layout.template) === surfaceOf(templates[scheme])
        ? noUpdate()
        : { ...figure, layout: { ...figure.layout, template: templates[scheme] } },
    ),
};
