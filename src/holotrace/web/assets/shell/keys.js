// Keyboard shortcuts of all pages.

import { toggleSidebar } from "./sidebar.js";

/** @typedef {[string, string][]} Keys keys and their effects */

/** @type {Keys} */
const EVERYWHERE = [
  ["/", "search"],
  ["[ ]", "previous, next page"],
  ["b", "show or hide the list of pages"],
  ["t", "light or dark"],
  ["?", "these keys"],
  ["Esc", "close, or clear the selection"],
];

/** @type {Keys} */
const ON_TABLES = [
  ["↑ ↓ ← →", "move between cells"],
  ["Space", "select the row"],
  ["Enter", "show the selected row on the timeline; on a column's heading, sort by the column"],
];

/** @type {Keys} */
const ON_THE_TIMELINE = [
  ["W S", "zoom in and out at the pointer"],
  ["A D", "pan left and right"],
  ["F", "fit the selection into view"],
  ["0", "show everything"],
  [", .", "previous, next event on the row; if none is selected, the first event in view"],
  ["J K", "event below, event above, at about the same time"],
  ["Shift N, N", "previous, next event with the same name"],
  ["M", "select the span of the selected event"],
  ["Shift F", "set a flag at the pointer"],
  ["Enter", "in the search: next match; with Shift, previous match"],
];

/** @param {number} distance */
const visit = (distance) => {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("#nav a")]);
  const here = links.findIndex((link) => link.hasAttribute("aria-current"));
  links[here + distance]?.click();
};

const search = () => {
  /** @type {HTMLElement | null} */
  const box = document.querySelector("#page .holotrace-search input");
  box?.focus();
};

/**
 * @param {string} tag
 * @param {string} text
 */
const withText = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

/**
 * @param {string} title
 * @param {Keys} keys
 */
const listOf = (title, keys) => {
  const list = document.createElement("dl");
  list.append(...keys.flatMap(([key, meaning]) => [withText("dt", key), withText("dd", meaning)]));
  return [withText("h2", title), list];
};

/** Open or close the dialog with the keys of the page. */
export const showKeys = () => {
  const open = document.getElementById("holotrace-keys");
  if (open) {
    open.remove();
    return;
  }
  const dialog = document.createElement("dialog");
  dialog.id = "holotrace-keys";
  dialog.setAttribute("aria-label", "Keys");
  const close = withText("button", "Close");
  const own = document.getElementById("timeline") ? listOf("Timeline", ON_THE_TIMELINE) : listOf("Tables", ON_TABLES);
  dialog.append(...listOf("Keys", EVERYWHERE), ...own, close);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};

/** @type {Record<string, () => void>} */
const ACTIONS = {
  "/": search,
  "[": () => visit(-1),
  "]": () => visit(1),
  b: toggleSidebar,
  t: () => document.getElementById("dark")?.click(),
  "?": showKeys,
};

/**
 * If the table shows a link from its selected row to the timeline, follow the link; return whether there was one.
 * @param {Element} cell
 */
const showRow = (cell) => {
  /** @type {HTMLElement | null | undefined} */
  const link = cell.closest(".holotrace-table")?.querySelector('a[href*="view=timeline"]');
  const isShown = Boolean(link?.checkVisibility());
  if (isShown) {
    link?.click();
  }
  return isShown;
};

/** Handle the help button and shortcuts; elements with the attribute `data-keys` handle their own keys. */
export const listenForKeys = () => {
  document.addEventListener("click", (event) => {
    if (/** @type {Element} */ (event.target).closest("#help")) {
      showKeys();
    }
  });
  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (event.key === "Enter" && target.closest(".ag-cell") && showRow(target)) {
      event.preventDefault();
      return;
    }
    const isTaken = target.closest("input, textarea, select, dialog, [contenteditable], [data-keys]");
    const action = ACTIONS[event.key];
    if (action && !isTaken && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      action();
    }
  });
};
