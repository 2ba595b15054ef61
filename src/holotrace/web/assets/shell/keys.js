// Keyboard shortcuts of all pages.

const HELP = "/ search   [ ] previous, next page   t light or dark   ? these keys";

/** @param {number} distance */
const visit = (distance) => {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("#nav a")]);
  const here = links.findIndex((link) => link.dataset.active === "true");
  links[here + distance]?.click();
};

const search = () => {
  /** @type {HTMLElement | null} */
  const box = document.querySelector("#page .holotrace-search input");
  box?.focus();
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
  note.textContent = HELP;
  document.body.append(note);
};

/** @type {Record<string, () => void>} */
const ACTIONS = {
  "/": search,
  "[": () => visit(-1),
  "]": () => visit(1),
  t: () => document.getElementById("dark")?.click(),
  "?": showKeys,
  Escape: () => document.getElementById("holotrace-keys") && showKeys(),
};

/** Handle shortcuts, except in elements with their own keys, which have the attribute `data-keys`. */
export const listenForKeys = () =>
  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    const isTaken = target.closest("input, textarea, select, [contenteditable], [data-keys]");
    const action = ACTIONS[event.key];
    if (action && !isTaken && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      action();
    }
  });
