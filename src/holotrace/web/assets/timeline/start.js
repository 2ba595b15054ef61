// Runs the timeline while its page is shown, and passes keys to it.

import { Timeline } from "./timeline.js";

/** The attributes of the page's element, from `pages/timeline.py`, that make a new timeline when they change. */
const ATTRIBUTES = ["run", "ranks", "steps", "devices", "find", "event", "at", "show"];

/** @type {Timeline | null} */
let current = null;

/** @param {Timeline | null} next */
const replaceWith = (next) => {
  current = next;
  window.holotrace.timeline = next; // for the console, and for tests
};

// Dash inserts the page and removes it again.
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

/** @param {EventTarget | null} target */
const isTyping = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable]");

window.addEventListener(
  "keydown",
  (event) => {
    if (!current || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
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
window.addEventListener("resize", () => current?.resize());
new MutationObserver(attach).observe(document.documentElement, {
  childList: true,
  subtree: true,
  attributeFilter: ATTRIBUTES.map((key) => `data-${key}`),
});
attach();
