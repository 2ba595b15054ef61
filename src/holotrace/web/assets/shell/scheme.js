// Chooses the colour scheme, light or dark. Inside TensorBoard, the page uses TensorBoard's scheme; elsewhere, it uses
// the visitor's last choice or, if there is none, the system's preference.

import * as storage from "./storage.js";

const KEY = "holotrace-color-scheme";

/** Return the body of the TensorBoard page that embeds this page; null elsewhere. */
const bodyAround = () => {
  try {
    return window.parent === window ? null : window.parent.document.body;
  } catch {
    return null; // this page is embedded in a page of another site
  }
};

/** @param {HTMLElement | null} body */
const schemeOf = (body) => (body?.classList.contains("dark-mode") ? "dark" : "light");

/** @param {string} scheme */
export const store = (scheme) => storage.store(KEY, scheme);

/**
 * Apply a scheme to the tables, and store it in a cookie for the server, which draws the next page in this scheme.
 * @param {string} scheme
 */
export const use = (scheme) => {
  document.documentElement.dataset.agThemeMode = scheme;
  if (!document.cookie.includes(`${KEY}=${scheme}`)) {
    document.cookie = `${KEY}=${scheme}; SameSite=Strict; max-age=31536000`;
  }
};

/** Return the scheme of a new page. */
export const first = () => {
  if (window.parent !== window) {
    return schemeOf(bodyAround());
  }
  return storage.stored(KEY) || (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
};

/** In TensorBoard, follow TensorBoard's switch between light and dark. */
export const followTensorboard = () => {
  const body = bodyAround();
  if (!body) {
    return;
  }
  const follow = () => {
    const scheme = schemeOf(body);
    document.documentElement.dataset.agThemeMode = scheme;
    window.dash_clientside.set_props("theme", { forceColorScheme: scheme });
  };
  new MutationObserver(follow).observe(body, { attributes: true, attributeFilter: ["class"] });
};
