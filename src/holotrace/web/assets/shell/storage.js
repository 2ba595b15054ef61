// What the browser remembers about a visitor's choices, such as light or dark; some browsers allow no storage.

/** @param {string} key */
export const stored = (key) => {
  try {
    return window.localStorage.getItem(key);
  } catch {
    return null;
  }
};

/**
 * @param {string} key
 * @param {string} value
 */
export const store = (key, value) => {
  try {
    window.localStorage.setItem(key, value);
  } catch {
    // the choice lasts until the page is closed
  }
};
