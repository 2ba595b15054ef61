// Draws the links to all pages, and dims links to pages without data; `pages/without_data.py` lists these pages.

/** @typedef {import("../types.js").Section} Section */

const NOTE = "no data in this recording";

/**
 * Show the page of a link without loading the document again, by sending the event that Dash's own links send:
 * https://github.com/plotly/dash/blob/dev/components/dash-core-components/src/components/Link.react.js
 * @param {MouseEvent & { currentTarget: HTMLAnchorElement }} click
 */
const follow = (click) => {
  if (click.ctrlKey || click.metaKey || click.shiftKey || click.altKey) {
    return; // the browser opens a new tab or window
  }
  click.preventDefault();
  window.history.pushState({}, "", click.currentTarget.href);
  window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  window.scrollTo(0, 0);
};

/**
 * The React component for `shell/navigation.py`.
 * @param {{ sections: Section[] }} props
 */
export const Navigation = ({ sections }) => {
  const { createElement } = window.React;
  return sections.flatMap(({ title, links }) => [
    ...(title ? [createElement("p", { key: `section ${title}` }, title)] : []),
    ...links.map(({ title: page, href, isShown }) =>
      createElement("a", { key: page, href, onClick: follow, "aria-current": isShown ? "page" : null }, page),
    ),
  ]);
};

/** Mark the links to pages without data. Each page creates the navigation again, so the links must be marked again. */
export const dimPagesWithoutData = () => {
  const pages = (document.getElementById("without-data")?.dataset.pages ?? "").split(" ");
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("#nav a"))) {
    const note = pages.includes(new URLSearchParams(link.search).get("view") ?? "") ? NOTE : "";
    if (link.title !== note) {
      link.title = note;
    }
  }
};
