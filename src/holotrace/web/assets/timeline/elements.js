// Creates elements of the page. Inserts names from traces as text, never as markup.

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {string} [text]
 */
export const element = (tag, className = "", text) => {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) {
    made.textContent = text;
  }
  return made;
};

/**
 * @param {string} text
 * @param {string} title
 * @param {() => unknown} action
 */
export const button = (text, title, action) => {
  const made = element("button", "", text);
  made.type = "button";
  made.title = title;
  made.addEventListener("click", action);
  return made;
};
