"use strict";

window.dash_clientside = window.dash_clientside || {};

(() => {
  const perTable = /^(q|by|top)\./;
  const keyOfScheme = "holotrace-color-scheme";

  // Write [0, 1, 2, 7] as "0-2,7", as the server reads it.
  const rangesOf = (texts) => {
    const numbers = texts.map(Number).sort((one, other) => one - other);
    const runs = [];
    for (const number of numbers) {
      const last = runs[runs.length - 1];
      if (last && number === last[1] + 1) {
        last[1] = number;
      } else {
        runs.push([number, number]);
      }
    }
    return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
  };

  const textOf = (value) => (Array.isArray(value) ? rangesOf(value) : value || "");

  // The id of a run, or of one of its spans.
  const runOf = (run, span) => (span ? `${run}~${span}` : run);

  const put = (params, key, value) => (value ? params.set(key, value) : params.delete(key));

  const searchOf = (params) => `?${params.toString().replaceAll("%2C", ",").replaceAll("%7E", "~")}`;

  // Remember something in the address without asking the server for the page again.
  const remember = (params) => window.history.replaceState(window.history.state, "", searchOf(params));

  const forget = (params, isForgotten) => {
    for (const key of [...params.keys()].filter(isForgotten)) {
      params.delete(key);
    }
  };

  const tensorboardIsDark = () => {
    try {
      return window.parent !== window && window.parent.document.body.classList.contains("dark-mode");
    } catch {
      return false; // the page around this one is of another site
    }
  };

  const storedScheme = () => {
    try {
      return window.localStorage.getItem(keyOfScheme);
    } catch {
      return null; // the browser keeps nothing for this site
    }
  };

  const storeScheme = (scheme) => {
    try {
      window.localStorage.setItem(keyOfScheme, scheme);
    } catch {
      // then the choice lasts as long as the page
    }
  };

  // The server makes the first page; with the colours that were shown last it need not be drawn twice.
  const tellServer = (scheme) => {
    if (!document.cookie.includes(`${keyOfScheme}=${scheme}`)) {
      document.cookie = `${keyOfScheme}=${scheme}; SameSite=Strict; max-age=31536000`;
    }
  };

  const firstScheme = () => {
    if (window.parent !== window) {
      return tensorboardIsDark() ? "dark" : "light";
    }
    const preferred = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    return storedScheme() || preferred;
  };

  const refreshGrid = (name) => {
    for (const box of document.querySelectorAll(".ag-root-wrapper")) {
      const element = box.closest("[id]");
      if (!element || !element.id.includes(`"name":"${name}"`)) {
        continue;
      }
      const api = window.dash_ag_grid && window.dash_ag_grid.getApi(element.id);
      if (api) {
        api.purgeInfiniteCache();
      }
    }
  };

  const NAMES = ["name", "operator", "annotation", "top_level_op", "event"];

  // "1,234 ns" -> "1234"; empty where the cell holds no whole number.
  const digitsOf = (row, key) => (/^[\d,]+( ns)?$/.test(row[`${key}|exact`] || "") ? row[`${key}|exact`].replace(/\D/g, "") : "");

  // Where a row of a table is in the timeline: exactly, if it says so, else wherever its name is found.
  const placeOf = (row) => {
    const [rank, event, start, duration] = ["rank", "event_index", "start_ns", "duration_ns"].map((key) => digitsOf(row, key));
    const at = digitsOf(row, "at_ns");
    if (rank && event) {
      return ["event", `${rank}:${event}`];
    }
    if (at || start) {
      const end = !at && (digitsOf(row, "end_ns") || (duration && String(BigInt(start) + BigInt(duration))));
      return ["at", at || (end ? `${start}-${end}` : start)];
    }
    const named = NAMES.find((key) => row[`${key}|exact`]);
    return named && ["find", row[`${named}|exact`]];
  };

  const KEYS = "/ search   [ ] page before, after   t light or dark   ? these keys";

  const visit = (distance) => {
    const links = [...document.querySelectorAll("#nav a")];
    const here = links.findIndex((link) => link.dataset.active === "true");
    const next = links[here + distance];
    if (next) {
      next.click();
    }
  };

  const search = () => {
    const box = document.querySelector("#page .holotrace-search input");
    if (box) {
      box.focus();
    }
  };

  const showKeys = () => {
    const shown = document.getElementById("holotrace-keys");
    if (shown) {
      shown.remove();
      return;
    }
    const note = document.createElement("div");
    note.id = "holotrace-keys";
    note.setAttribute("role", "status");
    note.textContent = KEYS;
    document.body.append(note);
  };

  const ACTIONS = {
    "/": search,
    "[": () => visit(-1),
    "]": () => visit(1),
    t: () => document.getElementById("dark").click(),
    "?": showKeys,
    Escape: () => document.getElementById("holotrace-keys") && showKeys(),
  };

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    const action = ACTIONS[event.key];
    const isTaken = event.target.closest("[data-keys]");
    if (action && !isTyping && !isTaken && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      action();
    }
  });

  let isChecked = false;

  const surfaceOf = (template) => template.layout.paper_bgcolor;

  window.dash_clientside.holotrace = {
    // Selectors -> address. A run that the server chose is named in it, quietly. Where the server was told another
    // address than this one, it is asked for the page of this one.
    select: (values, ids, told) => {
      const isTold = isChecked || told === window.location.search;
      isChecked = true;
      const params = new URLSearchParams(window.location.search);
      const chosen = Object.fromEntries(ids.map((id, place) => [id.name, textOf(values[place])]));
      for (const [key, run] of [...document.querySelectorAll("[data-served]")].map((each) => each.dataset.served.split("="))) {
        if (!params.has(key) && run) {
          params.set(key, run);
          remember(params);
        }
      }
      const before = searchOf(params);
      const [run, span] = (params.get("run") || "").split("~");
      const wanted = runOf(chosen.run || run, chosen.run && chosen.run !== run ? "" : chosen.span ?? span);
      delete chosen.run;
      delete chosen.span;
      if (wanted !== (params.get("run") || "")) {
        forget(params, (key) => perTable.test(key) || ["ranks", "steps", "devices", "event", "at"].includes(key));
        put(params, "run", wanted);
      } else {
        for (const [name, text] of Object.entries(chosen)) {
          put(params, name, text);
        }
      }
      const after = searchOf(params);
      return after === before && isTold ? window.dash_clientside.no_update : after;
    },

    // Controls of a table, when they change -> address and links to its downloads; its rows are asked for anew.
    table: (search, by, top, id) => {
      const params = new URLSearchParams(window.location.search);
      put(params, `q.${id.name}`, search);
      put(params, `by.${id.name}`, by);
      put(params, `top.${id.name}`, top);
      remember(params);
      refreshGrid(id.name);
      return ["csv", "parquet"].map((form) => `download/${form}/${id.name}${searchOf(params)}`);
    },

    // A row that is about an event, a moment or a name -> the link to it in the timeline.
    timeline: (selected) => {
      const [row] = selected.flatMap((rows) => rows || []);
      const [option, value] = (row && placeOf(row)) || [];
      if (!option) {
        return ["?view=timeline", true];
      }
      const params = new URLSearchParams(window.location.search);
      forget(params, (key) => perTable.test(key) || ["control", "event", "at", "find"].includes(key));
      put(params, "view", "timeline");
      put(params, option, value);
      put(params, "ranks", digitsOf(row, "rank") || params.get("ranks"));
      return [searchOf(params), false];
    },

    scheme: (clicks, scheme) => {
      const next = clicks ? (scheme === "dark" ? "light" : "dark") : firstScheme();
      if (clicks) {
        storeScheme(next);
      }
      document.documentElement.dataset.agThemeMode = next;
      tellServer(next);
      return next === scheme ? window.dash_clientside.no_update : next;
    },

    figures: (scheme, figures, templates) =>
      figures.map((figure) =>
        surfaceOf(figure.layout.template) === surfaceOf(templates[scheme])
          ? window.dash_clientside.no_update
          : { ...figure, layout: { ...figure.layout, template: templates[scheme] } },
      ),
  };
})();
