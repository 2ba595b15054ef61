// Runs the timeline while its page is shown, and forwards keys to it.

import { Timeline } from "./timeline.js";

/** Attributes of the page's element, from `pages/timeline.py`; if one changes, a new timeline is created. */
const ATTRIBUTES = [
  "run", "ranks", "steps", "devices", "find", "event", "at", "show", "window", "top", "flags", "panel", "rows", "sql",
];

/** @type {Timeline | null} */
let current = null;

/** @param {Timeline | null} next */
const replaceWith = (next) => {
  current = next;
  window.holotrace.timeline = next; // for the browser's console and for tests
};

// Dash inserts and removes the page, so the timeline starts and stops with the page's element.
const attach = () => {
  const root = document.getElementById("timeline");
  const old = current;
  if (old && (old.root !== root || ATTRIBUTES.some((key) => old.attributes[key] !== root.dataset[key]))) {
    old.close();
    replaceWith(null);
  }
  if (root && !current) {
    replaceWith(new Timeline(root));
  }
};

/**
 * Return whether the focused element handles the key itself. Escape is also handled inside elements with the attribute
 * `data-escape`.
 * @param {KeyboardEvent} event
 */
const isTaken = ({ key, target }) =>
  target instanceof Element &&
  target.closest(`input, textarea, select, dialog, [contenteditable]${key === "Escape" ? ", [data-escape]" : ""}`);

window.addEventListener(
  "keydown",
  (event) => {
    if (!current || event.ctrlKey || event.metaKey || event.altKey || isTaken(event)) {
      return;
    }
    if (current.input.key(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  },
  true,
);
window.addEventListener("keyup", (event) => current?.input.release(event), true);
window.addEventListener("blur", () => current?.input.held.clear());
new MutationObserver(attach).observe(document.documentElement, {
  childList: true,
  subtree: true,
  attributeFilter: ATTRIBUTES.map((key) => `data-${key}`),
});
attach();
