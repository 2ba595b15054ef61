"use strict";

// In TensorBoard, follow its switch between dark and light.
(() => {
  const bodyAround = () => {
    try {
      return window.parent === window ? null : window.parent.document.body;
    } catch {
      return null; // the page around this one is of another site
    }
  };

  const body = bodyAround();
  if (!body) {
    return;
  }
  const follow = () => {
    const scheme = body.classList.contains("dark-mode") ? "dark" : "light";
    document.documentElement.dataset.agThemeMode = scheme;
    window.dash_clientside.set_props("theme", { forceColorScheme: scheme });
  };
  new MutationObserver(follow).observe(body, { attributes: true, attributeFilter: ["class"] });
})();
