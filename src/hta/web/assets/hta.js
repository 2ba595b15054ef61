"use strict";

window.dash_clientside = window.dash_clientside || {};

(() => {
  const perTable = /^(q|by|top)\./;
  const keyOfScheme = "hta-color-scheme";

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

  const put = (params, key, value) => (value ? params.set(key, value) : params.delete(key));

  const searchOf = (params) => `?${params.toString().replaceAll("%2C", ",")}`;

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
    const box = document.querySelector("#page .hta-search input");
    if (box) {
      box.focus();
    }
  };

  const showKeys = () => {
    const shown = document.getElementById("hta-keys");
    if (shown) {
      shown.remove();
      return;
    }
    const note = document.createElement("div");
    note.id = "hta-keys";
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
    Escape: () => document.getElementById("hta-keys") && showKeys(),
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

  window.dash_clientside.hta = {
    // Selectors -> address. A run that the server chose is named in it, quietly.
    select: (values, ids) => {
      const params = new URLSearchParams(window.location.search);
      const chosen = Object.fromEntries(ids.map((id, place) => [id.name, textOf(values[place])]));
      for (const key of ["run", "control"]) {
        if (!params.has(key) && chosen[key]) {
          params.set(key, chosen[key]);
          remember(params);
        }
      }
      const before = searchOf(params);
      if (chosen.run && chosen.run !== params.get("run")) {
        forget(params, (key) => perTable.test(key) || ["ranks", "steps", "devices"].includes(key));
        put(params, "run", chosen.run);
      } else {
        for (const [name, text] of Object.entries(chosen)) {
          put(params, name, text);
        }
      }
      const after = searchOf(params);
      return after === before ? window.dash_clientside.no_update : after;
    },

    // Controls of a table -> address and links to its downloads; its rows are asked for anew.
    table: (search, by, top, id) => {
      const params = new URLSearchParams(window.location.search);
      put(params, `q.${id.name}`, search);
      put(params, `by.${id.name}`, by);
      put(params, `top.${id.name}`, top);
      remember(params);
      refreshGrid(id.name);
      return ["csv", "parquet"].map((form) => `download/${form}/${id.name}${searchOf(params)}`);
    },

    // A row that names something -> the link that looks for it in the timeline.
    timeline: (selected) => {
      const [row] = selected.flatMap((rows) => rows || []);
      const named = row && ["name", "operator", "annotation", "top_level_op"].find((key) => row[`${key}|exact`]);
      if (!named) {
        return ["?view=timeline", true];
      }
      const params = new URLSearchParams(window.location.search);
      forget(params, (key) => perTable.test(key) || key === "control");
      put(params, "view", "timeline");
      put(params, "find", row[`${named}|exact`]);
      if (/^\d+$/.test(row.rank || "")) {
        put(params, "ranks", row.rank);
      }
      return [searchOf(params), false];
    },

    scheme: (clicks, scheme) => {
      const next = clicks ? (scheme === "dark" ? "light" : "dark") : firstScheme();
      if (clicks) {
        storeScheme(next);
      }
      document.documentElement.dataset.agThemeMode = next;
      return next;
    },

    figures: (scheme, figures, templates) =>
      figures.map((figure) => ({ ...figure, layout: { ...figure.layout, template: templates[scheme] } })),
  };
})();
