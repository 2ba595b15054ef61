// The table of an area: the number of events and their times, for each name and kind of event. Names are inserted as
// text, never as markup.

import { button, element } from "../elements.js";
import { countedText, countText, durationText } from "../../units.js";

/** @typedef {import("../../types.js").TotalsAnswer} TotalsAnswer */
/**
 * @typedef {object} Actions
 * @property {(by: string) => void} sort
 * @property {(rank: number, event: number) => void} showEvent
 */

/** Columns: the server's name, the heading, and the meaning. @type {[string, string, string][]} */
const COLUMNS = [
  ["count", "count", "number of events that overlap the area"],
  ["total_ns", "total", "total time that the events spend inside the area"],
  ["self_ns", "self", "total time inside the area, minus the time of directly nested events"],
  ["mean_ns", "mean", "mean time that an event spends inside the area"],
  ["min_ns", "min", "shortest time that an event spends inside the area"],
  ["max_ns", "max", "longest time that an event spends inside the area"],
];

const FIRST_ROWS = 15;

/**
 * Hide all but the first `FIRST_ROWS` rows until a button is pressed, to keep the flame graph in view.
 * @param {HTMLElement} body
 */
const folded = (body) => {
  const later = /** @type {HTMLElement[]} */ ([...body.children].slice(FIRST_ROWS));
  later.forEach((line) => line.toggleAttribute("hidden", true));
  const more = button(`show ${countText(later.length)} more`, "show all rows of the table", () => {
    later.forEach((line) => line.removeAttribute("hidden"));
    more.remove();
  });
  return later.length ? [more] : [];
};

/**
 * @param {string} column
 * @param {number} value
 */
const cell = (column, value) => {
  if (column === "count") {
    return element("td", "", countText(value));
  }
  const made = element("td", "", durationText(value));
  made.title = `${countText(value)} ns`;
  return made;
};

/**
 * Make a button that switches between rounded times and whole nanoseconds.
 * @param {HTMLElement} body
 */
const exactButton = (body) => {
  const made = button("whole ns", "show all times in whole nanoseconds", () => {
    made.setAttribute("aria-pressed", String(made.getAttribute("aria-pressed") === "false"));
    for (const time of /** @type {NodeListOf<HTMLElement>} */ (body.querySelectorAll("td[title]"))) {
      [time.title, time.textContent] = [time.textContent ?? "", time.title];
    }
  });
  made.setAttribute("aria-pressed", "false");
  return made;
};

/**
 * @param {string} by
 * @param {Actions} actions
 */
const headings = (by, { sort }) => {
  const line = element("tr");
  line.append(element("th", "", "name"), element("th", "", "category"));
  for (const [column, text, meaning] of COLUMNS) {
    const heading = element("th");
    const made = button(column === by ? `${text} ▾` : text, `sort by ${text}: ${meaning}`, () => sort(column));
    heading.setAttribute("aria-sort", column === by ? "descending" : "none");
    made.toggleAttribute("data-is-focused", column === by && document.activeElement?.textContent === text);
    heading.append(made);
    line.append(heading);
  }
  return line;
};

/**
 * @param {TotalsAnswer} answer
 * @param {string} by
 * @param {Actions} actions
 */
export const totalsTable = ({ rows, count, event_count: events, self_ns: self }, by, actions) => {
  const table = element("table", "holotrace-totals");
  const left = count > rows.length ? `, the first ${countText(rows.length)} of them below` : "";
  const caption = element("caption", "", `Totals: ${countedText(events, "event")} with ${countedText(count, "name")}${left}`);
  caption.append(element("span", "", `${durationText(self)} in all rows together`));
  const head = element("thead");
  head.append(headings(by, actions));
  const body = element("tbody");
  for (const [name, kind, ...numbers] of rows) {
    const line = element("tr");
    const [rank, event] = numbers.slice(COLUMNS.length);
    const first = element("td");
    first.append(button(name, `show the longest: ${name}`, () => actions.showEvent(rank, event)));
    line.append(first, element("td", "", kind), ...COLUMNS.map(([column], at) => cell(column, numbers[at])));
    body.append(line);
  }
  table.append(caption, head, body);
  const box = element("div", "holotrace-timeline-actions");
  box.append(table, exactButton(body), ...folded(body));
  return box;
};
