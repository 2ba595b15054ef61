"use strict";

// Fetches what draws figures, tables and pages of their own kind when it is wanted. `shell/scripts.py` says which scripts these
// are, and why not all of them come with the page.
(() => {
  const PATIENCE_MS = 3_000;
  const LOOK_AGAIN_MS = 30;

  const addresses = JSON.parse(document.getElementById("holotrace-scripts").textContent);
  const coming = {};

  const came = (script) =>
    new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));

  const fetched = (address) => {
    const script = Object.assign(document.createElement("script"), { src: address, async: false });
    document.head.append(script);
    return came(script);
  };

  const all = (scripts) => Promise.all(scripts.map(fetched));

  // Figures. Dash waits for whatever stands in window.Plotly; the script puts itself there.
  const plotly = () => {
    const script = document.getElementById("holotrace-plotly");
    coming.plotly ??= (window.Plotly ? Promise.resolve() : script ? came(script) : all(addresses.plotly)).then(arrange);
    window.Plotly ??= coming.plotly;
  };

  const frame = () => new Promise((resolve) => window.requestAnimationFrame(() => window.setTimeout(resolve)));

  // Draw one figure at a time, so that the first is seen before the next is begun; and fetch all of plotly.js for a figure
  // that the small one cannot draw.
  const arrange = () => {
    const { react } = window.Plotly;
    const isPossible = ({ type = "scatter" }) => !addresses.plotlyTypes || addresses.plotlyTypes.includes(type);
    let last = Promise.resolve();
    window.Plotly.react = (element, figure, ...rest) => {
      if (!(figure.data || []).every(isPossible)) {
        coming.wholePlotly ??= all(addresses.wholePlotly);
        return coming.wholePlotly.then(() => window.Plotly.react(element, figure, ...rest));
      }
      const drawn = last.then(() => react(element, figure, ...rest));
      last = drawn.catch(() => null).then(frame);
      return drawn;
    };
  };

  // Tables. Their controls and grids are made when the figures are drawn; until then they are no more than a gap.
  const isDrawing = () =>
    [...document.querySelectorAll("#page .dash-graph")].some((graph) => !graph.querySelector(".main-svg"));

  const figuresDrawn = async () => {
    for (let waited = 0; isDrawing() && waited < PATIENCE_MS; waited += LOOK_AGAIN_MS) {
      await new Promise((resolve) => window.setTimeout(resolve, LOOK_AGAIN_MS));
    }
  };

  const tables = async () => {
    await figuresDrawn();
    await (coming.tables ??= all(addresses.tables));
  };

  const Later = ({ children, height }) => {
    const { createElement, useEffect, useState } = window.React;
    const [isTime, setTime] = useState(false);
    useEffect(() => {
      tables().then(() => setTime(true));
    }, []);
    return isTime ? children : createElement("div", { className: "holotrace-awaited", style: { height } });
  };
  window.holotrace = { Later };
  window.dash_ag_grid = { AgGrid: () => null }; // Dash looks whether it is there long before it is mounted

  const look = () => {
    if (document.getElementById("holotrace-plotly") || document.querySelector("#page .mantine-Loader-root, #page .dash-graph")) {
      plotly();
    }
    const view = new URLSearchParams(window.location.search).get("view");
    if (Object.hasOwn(addresses.pages, view)) {
      coming[view] ??= all(addresses.pages[view]);
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
})();
