// The list of pages at the side. In a wide window, the browser remembers whether the list is open. In a narrow window,
// an open list covers the page until the visitor follows a link. The document's attribute `data-sidebar` tells
// `style.css` whether to show the list.

import { store, stored } from "./storage.js";

const KEY = "holotrace-sidebar";
const narrow = window.matchMedia("(max-width: 61.99375em)"); // where Mantine's `md` begins
const button = () => document.getElementById("sidebar");

let isOver = false;

const isOpen = () => (narrow.matches ? isOver : stored(KEY) !== "closed");

const apply = () => {
  document.documentElement.dataset.sidebar = isOpen() ? "open" : "closed";
  button()?.setAttribute("aria-expanded", String(isOpen()));
};

/** @param {boolean} isWanted */
const open = (isWanted) => {
  if (narrow.matches) {
    isOver = isWanted;
  } else {
    store(KEY, isWanted ? "open" : "closed");
  }
  apply();
};

export const toggleSidebar = () => open(!isOpen());

/** @param {Event} event */
const clicked = ({ target }) => {
  const element = /** @type {Element} */ (target);
  if (element.closest("#sidebar")) {
    toggleSidebar();
  } else if (isOver && element.closest("#nav a")) {
    open(false);
  }
};

/** @param {KeyboardEvent} event */
const pressed = ({ key }) => {
  if (key === "Escape" && isOver) {
    open(false);
    button()?.focus();
  }
};

/** Show or hide the list of pages as the visitor last chose, and let the button open and close it. */
export const showSidebar = () => {
  narrow.addEventListener("change", () => {
    isOver = false;
    apply();
  });
  document.addEventListener("click", clicked);
  document.addEventListener("keydown", pressed);
  new MutationObserver((_, observer) => {
    if (button()) {
      observer.disconnect();
      apply();
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
  apply();
};
