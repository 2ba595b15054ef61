// Runs a SQL query on the trace, and lists the rows of the result, with buttons to show them on the timeline. Names are
// never markup.

import { ask, send } from "../data/server.js";
import { button, element } from "../elements.js";
import { countText } from "../../units.js";

/** @typedef {import("../../types.js").SqlAnswer} SqlAnswer */
/** @typedef {import("../../types.js").SqlPlace} SqlPlace */
/** @typedef {{ name: string, meaning: string, columns: string[] }} SqlView */
/**
 * @typedef {object} Actions
 * @property {(place: SqlPlace) => void} show
 * @property {(query: string) => void} asked puts the query into the page's address; empty if the query is too long
 */

const LONGEST_IN_ADDRESS = 1_500;
const FIRST_QUERY = "SELECT rank, event_index, start_ns, duration_ns, name\nFROM kernels ORDER BY duration_ns DESC LIMIT 20";

export class SqlBox {
  /**
   * @param {{ run: string, ranks: string, query: string }} of
   * @param {Actions} actions
   */
  constructor({ run, ranks, query }, { show, asked }) {
    this.run = run;
    this.ranks = ranks;
    this.show = show;
    this.asked = asked;
    this.attempt = 0;
    this.root = element("section", "holotrace-sql");
    this.root.setAttribute("aria-label", "SQL");
    this.query = this.queryField(query || FIRST_QUERY);
    this.status = element("span", "holotrace-timeline-status");
    this.status.setAttribute("role", "status");
    this.views = element("details");
    this.views.append(element("summary", "", "views and their columns"));
    this.views.addEventListener("toggle", () => this.listViews(), { once: true });
    this.result = element("div", "holotrace-sql-result");
    const actions = element("p", "holotrace-timeline-actions");
    actions.append(button("run", "run the query (Ctrl Enter)", () => this.answer()), this.status);
    this.root.append(element("h2", "", "SQL"), this.query, actions, this.views, this.result);
  }

  /** @param {string} query */
  queryField(query) {
    const box = element("textarea");
    box.value = query;
    box.rows = 3;
    box.spellcheck = false;
    box.maxLength = 10_000;
    box.setAttribute("aria-label", "SQL query");
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.answer();
      }
    });
    return box;
  }

  async listViews() {
    try {
      /** @type {SqlView[]} */
      const views = await ask("views", {});
      const list = element("dl");
      for (const { name, meaning, columns } of views) {
        list.append(element("dt", "", name), element("dd", "", `${meaning}: ${columns.join(", ")}`));
      }
      this.views.append(list);
    } catch (error) {
      this.status.textContent = /** @type {Error} */ (error).message;
    }
  }

  async answer() {
    const attempt = (this.attempt += 1);
    const query = this.query.value;
    this.asked(query.length > LONGEST_IN_ADDRESS ? "" : query);
    this.status.textContent = "computing";
    /** @param {string} text */
    const waiting = (text) => {
      this.status.textContent = text;
    };
    try {
      const parameters = { run: this.run, ranks: this.ranks, attempt };
      /** @type {SqlAnswer} */
      const answer = await send("sql", parameters, { query }, { waiting });
      if (attempt === this.attempt) {
        this.put(answer);
      }
    } catch (error) {
      if (attempt === this.attempt) {
        this.status.textContent = /** @type {Error} */ (error).message;
        this.result.replaceChildren();
      }
    }
  }

  /** @param {SqlAnswer} answer */
  put(answer) {
    const { columns, count, places, rows } = answer;
    const left = count > rows.length ? `, the first ${countText(rows.length)} below` : "";
    this.status.textContent = `${countText(count)} ${count === 1 ? "row" : "rows"}${left}`;
    const hasPlaces = places.some(Boolean);
    const head = element("tr");
    head.append(...[...(hasPlaces ? [""] : []), ...columns].map((name) => element("th", "", name)));
    const table = element("table");
    table.append(head, ...rows.map((cells, at) => this.line(cells, at, places[at], hasPlaces)));
    this.result.replaceChildren(table);
  }

  /**
   * @param {(string | null)[]} cells
   * @param {number} at
   * @param {SqlPlace | null} place
   * @param {boolean} hasPlaces
   */
  line(cells, at, place, hasPlaces) {
    const line = element("tr");
    if (hasPlaces) {
      const first = element("td");
      if (place) {
        const show = button("show", "show this row on the timeline", () => this.show(place));
        show.setAttribute("aria-label", `show row ${at + 1} on the timeline`);
        first.append(show);
      }
      line.append(first);
    }
    line.append(...cells.map((text) => element("td", text === null ? "holotrace-sql-null" : "", text ?? "null")));
    return line;
  }
}
