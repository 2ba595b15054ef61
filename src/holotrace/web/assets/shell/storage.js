// Stores the visitor's choices in the browser, such as light or dark; does nothing if the browser does not allow this.

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
    // without storage, the choice is lost when the page is closed
  }
};
