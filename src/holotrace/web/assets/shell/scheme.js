// Light or dark: what the visitor chose last, what TensorBoard shows, or what the system prefers.

const KEY = "holotrace-color-scheme";

/** The body of TensorBoard's page around this one; null elsewhere. */
const bodyAround = () => {
  try {
    return window.parent === window ? null : window.parent.document.body;
  } catch {
    return null; // the page around this one belongs to another site
  }
};

/** @param {HTMLElement | null} body */
const schemeOf = (body) => (body?.classList.contains("dark-mode") ? "dark" : "light");

const stored = () => {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null; // the browser stores nothing for this site
  }
};

/** @param {string} scheme */
export const store = (scheme) => {
  try {
    window.localStorage.setItem(KEY, scheme);
  } catch {
    // then the choice lasts as long as the page
  }
};

/**
 * Use a scheme for the tables, and tell the server, so that the next first page is not drawn twice.
 * @param {string} scheme
 */
export const use = (scheme) => {
  document.documentElement.dataset.agThemeMode = scheme;
  if (!document.cookie.includes(`${KEY}=${scheme}`)) {
    document.cookie = `${KEY}=${scheme}; SameSite=Strict; max-age=31536000`;
  }
};

/** The scheme to begin with. */
export const first = () => {
  if (window.parent !== window) {
    return schemeOf(bodyAround());
  }
  return stored() || (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
};

/** In TensorBoard, follow its switch. */
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
