(() => {
  "use strict";
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const { figures, templates } = JSON.parse(document.getElementById("figures").textContent);
  const toggle = document.getElementById("theme");
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
  };
  const letterPx = 7.2;
  const [besidePx, labelsPx, besideTitlesPx] = [60, 190, 75];
  const sizeOfNames = 12;
  const tickPx = 15;

  const theme = () => root.dataset.theme || (prefersDark.matches ? "dark" : "light");
  const nameToggle = () => {
    toggle.textContent = theme() === "dark" ? "Light" : "Dark";
    toggle.hidden = false;
  };
  const plots = (within) => [...within.querySelectorAll(".plot")];
  const restyle = () => {
    nameToggle();
    for (const plot of plots(document).filter((plot) => plot.childElementCount)) {
      Plotly.relayout(plot, { template: templates[theme()] });
    }
  };

  // Names above bars are cut to the width of the figure (`&lt;` counts as one letter); titles inside a figure wrap.
  const cut = (text, length) => {
    const letters = text.match(/&[#a-z0-9]+;|./gsu) ?? [];
    return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
  };
  const wrapped = (text, length) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      lines.splice(-1, 1, ...(longer.length <= length ? [longer] : [lines.at(-1), word]));
    }
    return lines.filter(Boolean).join("<br>");
  };
  // An axis of many categories names fewer of them where their names would touch.
  const thinned = (axis, width) => {
    const [, every = "1"] = /every (\d+)(?:nd|th) is named/u.exec(axis.title?.text ?? "") ?? [];
    let by = 1;
    while (axis.type === "category" && (axis.tickvals?.length ?? 0) / by > (width - labelsPx) / tickPx) {
      by *= 2;
    }
    const nth = Number(every) * by;
    const name = axis.title?.text?.replace(/ ?\(?every .* is named\)?/u, "") ?? "";
    const kept = (values) => values?.filter((_, at) => at % by === 0);
    const title = { ...axis.title, text: `${name} (every ${nth}${nth % 10 === 2 && nth % 100 !== 12 ? "nd" : "th"} is named)`.trim() };
    return by === 1 ? axis : { ...axis, tickvals: kept(axis.tickvals), ticktext: kept(axis.ticktext), title };
  };
  const fitted = (layout, width) => {
    const beside = layout.yaxis?.showticklabels === false && !layout.yaxis2 ? besidePx : labelsPx;
    const length = Math.floor((width - beside) / letterPx);
    const hasNames = layout.yaxis2?.ticktext && layout.yaxis2.showticklabels !== false;
    const roomFor = (size) => Math.floor((width - (hasNames ? labelsPx : besideTitlesPx)) / ((letterPx * size) / sizeOfNames));
    const textOf = ({ text = "", yref, font }) =>
      yref === "paper" ? wrapped(text, roomFor(font?.size ?? sizeOfNames)) : cut(text, length);
    const fit = (note) => (note.xanchor === "left" ? { ...note, text: textOf(note), align: "left" } : note);
    const axes = ["xaxis", "xaxis2"].filter((name) => layout[name]).map((name) => [name, thinned(layout[name], width)]);
    return { ...layout, annotations: layout.annotations?.map(fit), ...Object.fromEntries(axes) };
  };

  // A figure is drawn when its section is first open: a closed section has no width.
  const draw = (plot) => {
    const figure = figures[plot.id.replace("figure-", "")];
    const layout = { ...fitted(figure.layout, plot.clientWidth), template: templates[theme()] };
    Plotly.newPlot(plot, figure.data, layout, config);
  };
  const drawOpen = () =>
    plots(document)
      .filter((plot) => !plot.childElementCount && plot.clientWidth)
      .forEach(draw);
  const openTarget = () => {
    const target = document.getElementById(window.location.hash.slice(1));
    for (let at = target; at; at = at.parentElement?.closest("details")) {
      at.open = true;
    }
    target?.scrollIntoView();
  };

  nameToggle();
  openTarget();
  drawOpen();
  document.addEventListener("toggle", drawOpen, true);
  window.addEventListener("hashchange", openTarget);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details.section").forEach((section) => (section.open = true));
    drawOpen();
  });
  toggle.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    restyle();
  });
  prefersDark.addEventListener("change", restyle);
})();
