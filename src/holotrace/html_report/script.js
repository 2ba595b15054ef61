import { fitted, followWidth } from "../web/assets/shell/figure_names.js"; // `report.py` puts the file here

(() => {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const { figures, templates } = JSON.parse(document.getElementById("figures").textContent);
  const toggle = document.getElementById("theme");
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
  };

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

  // A figure is drawn when its section is first opened, because a closed section has no width.
  const draw = (plot) => {
    const figure = figures[plot.id.replace("figure-", "")];
    const layout = { ...figure.layout, template: templates[theme()] };
    Plotly.newPlot(plot, { ...fitted(plot, { data: figure.data, layout }), config });
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

  followWidth();
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
