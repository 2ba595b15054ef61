// Loads the scripts for figures, for tables and for single pages when they are needed. `shell/scripts.py` writes the
// addresses of these scripts into the page; its docstring explains why the page does not load all scripts at once.

import { fitted } from "./figure_names.js";
import { dimPagesWithoutData } from "./navigation.js";

/** @typedef {import("../types.js").Plotly} Plotly */

const PATIENCE_MS = 3_000;
const POLL_MS = 30;

/** @type {import("../types.js").Addresses} */
const addresses = JSON.parse(document.getElementById("holotrace-scripts")?.textContent ?? "");

/** @type {Record<string, Promise<unknown>>} */
const loading = {};

/** @param {number} ms */
const wait = (ms) => new Promise((resolve) => window.setTimeout(resolve, ms));

/** @param {HTMLElement} script */
const loaded = (script) =>
  new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));

/** @param {string} address */
const load = (address) => {
  const script = Object.assign(document.createElement("script"), { src: address, async: false });
  document.head.append(script);
  return loaded(script);
};

/** @param {string[]} scripts */
const loadAll = (scripts) => Promise.all(scripts.map(load));

// Figures: Dash waits for the promise in window.Plotly; the script of plotly.js replaces this promise with the library.
const loadPlotly = () => {
  const script = document.getElementById("holotrace-plotly");
  const arrives = () => (window.Plotly ? Promise.resolve() : script ? loaded(script) : loadAll(addresses.plotly));
  loading.plotly ??= arrives().then(() => drawInTurn(addresses.plotlyTypes));
  window.Plotly ??= /** @type {Promise<void>} */ (loading.plotly);
};

const nextFrame = () => new Promise((resolve) => window.requestAnimationFrame(() => window.setTimeout(resolve)));

/**
 * Make plotly.js draw one figure at a time, so the first figure appears early, and fit the texts of each figure to its
 * width. If the small bundle cannot draw a figure, load all of plotly.js.
 * @param {string[]} [types] the types of plotly.js traces that the loaded bundle can draw; by default all types
 */
const drawInTurn = (types) => {
  const plotly = /** @type {Plotly} */ (window.Plotly);
  const { react } = plotly;
  /** @param {{ type?: string }} trace */
  const isPossible = ({ type = "scatter" }) => types?.includes(type) ?? true;
  /** @type {Promise<unknown>} */
  let last = Promise.resolve();
  plotly.react = (element, figure, ...rest) => {
    if (!(figure.data ?? []).every(isPossible)) {
      loading.wholePlotly ??= loadAll(addresses.wholePlotly).then(() => drawInTurn()); // it replaces window.Plotly
      return loading.wholePlotly.then(() => /** @type {Plotly} */ (window.Plotly).react(element, figure, ...rest));
    }
    const drawn = last.then(() => react(element, fitted(element, figure), ...rest));
    last = drawn.catch(() => null).then(nextFrame);
    return drawn;
  };
};

// Tables: controls and grids are created after the figures are drawn; until then, the page leaves space for them.
const isDrawing = () =>
  [...document.querySelectorAll("#page .dash-graph")].some((graph) => !graph.querySelector(".main-svg"));

const figuresDrawn = async () => {
  for (let waited = 0; isDrawing() && waited < PATIENCE_MS; waited += POLL_MS) {
    await wait(POLL_MS);
  }
};

const tablesLoaded = async () => {
  await figuresDrawn();
  await (loading.tables ??= loadAll(addresses.tables));
};

/**
 * The React component for `parts/later.py`; it shows its children once the figures are drawn or,
 * if `after` is "tables", once the table scripts are loaded too.
 * @param {{ children: unknown, after: "figures" | "tables", height: number }} props
 */
export const Later = ({ children, after, height }) => {
  const { createElement, useEffect, useState } = window.React;
  const [isTime, setTime] = useState(false);
  useEffect(() => {
    (after === "tables" ? tablesLoaded() : figuresDrawn()).then(() => setTime(true));
  }, []);
  return isTime ? children : createElement("div", { className: "holotrace-awaited", style: { height } });
};

const loadPage = () => {
  const view = new URLSearchParams(window.location.search).get("view") ?? "";
  if (Object.hasOwn(addresses.pages, view)) {
    loading[view] ??= import(new URL(addresses.pages[view], document.baseURI).href);
  }
};

/** Name the document after its page and run, to distinguish tabs and bookmarks. */
const nameDocument = () => {
  const page = document.querySelector("#page h1")?.textContent;
  const run = /** @type {HTMLInputElement | null} */ (document.querySelector("#selectors input"))?.value;
  const title = [page, run, "holotrace"].filter(Boolean).join(" · ");
  if (page && document.title !== title) {
    document.title = title;
  }
};

/** Load the scripts that the page needs, and name the document; do this again after each change of the content. */
export const loadWhatIsShown = () => {
  const look = () => {
    nameDocument();
    dimPagesWithoutData();
    const hasFigures = document.querySelector("#page .mantine-Loader-root, #page .dash-graph");
    if (document.getElementById("holotrace-plotly") || hasFigures) {
      loadPlotly();
    }
    loadPage();
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
};
