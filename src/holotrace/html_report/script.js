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

  const theme = () => root.dataset.theme || (prefersDark.matches ? "dark" : "light");
  const nameToggle = () => {
    toggle.textContent = theme() === "dark" ? "Light" : "Dark";
    toggle.hidden = false;
  };
  const restyle = () => {
    nameToggle();
    for (const name of Object.keys(figures)) {
      Plotly.relayout(`figure-${name}`, { template: templates[theme()] });
    }
  };

  nameToggle();
  for (const [name, figure] of Object.entries(figures)) {
    const layout = { ...figure.layout, template: templates[theme()] };
    Plotly.newPlot(`figure-${name}`, figure.data, layout, config);
  }
  toggle.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    restyle();
  });
  prefersDark.addEventListener("change", restyle);
})();
