// The panel below the canvas: shows an event, a span of time, or the findings.

import { toAxis } from "../data/clocks.js";
import * as colours from "../drawing/colours.js";
import { button, element } from "../elements.js";
import { countText, durationText, percentText } from "../../units.js";

/** @typedef {import("../../types.js").EventAnswer} EventAnswer */
/** @typedef {import("../../types.js").Finding} Finding */
/** @typedef {import("../../types.js").Link} Link */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Span} Span */
/** @typedef {import("../../types.js").SpanAnswer} SpanAnswer */
/** @typedef {import("../timeline.js").Timeline} Timeline */
/**
 * @typedef {object} Actions
 * @property {() => void} changed
 * @property {() => void} close
 * @property {(rank: number, event: number) => void} goTo
 * @property {(rank: Rank, finding: Finding) => void} goToFinding
 * @property {(of: "row" | "name", by: 1 | -1) => unknown} step
 */

export class Panel {
  /**
   * @param {Timeline} state
   * @param {Actions} actions
   */
  constructor(state, { changed, close, goTo, goToFinding, step }) {
    this.state = state;
    this.goTo = goTo;
    this.goToFinding = goToFinding;
    this.step = step;
    this.changed = changed;
    this.shown = ""; // "flags" while the panel lists them
    this.root = element("section", "holotrace-timeline-details");
    this.root.id = "timeline-details";
    this.root.setAttribute("aria-label", "details");
    this.root.tabIndex = 0; // for scrolling with the arrow keys
    this.root.dataset.keys = "";
    this.root.hidden = true;
    this.close = button("×", "close (Escape)", close);
    this.close.className = "holotrace-timeline-close";
    this.linkBox = element("ul");
    /** @type {Link[]} */
    this.inside = [];
  }

  hide() {
    this.put();
  }

  /** @param {Node[]} parts */
  put(...parts) {
    this.shown = "";
    this.fill(parts);
  }

  /** @param {Node[]} parts */
  fill(parts) {
    this.root.classList.remove("holotrace-timeline-span");
    this.root.replaceChildren(this.close, ...parts);
    this.root.hidden = !parts.length;
    this.root.scrollTop = 0;
    this.changed();
  }

  /**
   * @param {number} rank
   * @param {EventAnswer} answer
   */
  event(rank, answer) {
    const [row, , start, length] = answer.at;
    const item = this.state.view.rowItem(rank, row);
    const where = item ? `, ${item.row.process}, ${item.row.label}` : "";
    const clock = this.state.rankOf(rank)?.clock;
    const at = (clock ? toAxis(clock, start) : start) - this.state.view.whole.start;
    const summary = `${answer.kind} of ${durationText(length)} at ${durationText(at)}, rank ${rank}${where}`;
    const facts = element("dl");
    const exact = [["start_ns", answer.start_ns], ["duration_ns", String(length)], ...answer.arguments];
    exact.forEach(([name, value]) => facts.append(element("dt", "", name), element("dd", "", value)));
    this.linkBox = element("ul");
    this.inside = answer.inside.map((link) => ({ ...link, relation: "inside" }));
    this.put(element("h2", "", answer.name), element("p", "", summary), this.steps(), facts, this.linkBox);
  }

  /** Return buttons for the next and previous events. */
  steps() {
    const group = element("div", "holotrace-timeline-actions");
    group.append(
      button("‹ row", "previous event on this row (,)", () => this.step("row", -1)),
      button("row ›", "next event on this row (.)", () => this.step("row", 1)),
      button("‹ name", "previous event with this name (Shift N)", () => this.step("name", -1)),
      button("name ›", "next event with this name (N)", () => this.step("name", 1)),
    );
    return group;
  }

  /**
   * Show a list that is opened by a button of the toolbar.
   * @param {"flags"} name
   * @param {Node[]} parts
   */
  list(name, parts) {
    this.shown = name;
    this.fill(parts);
  }

  searching() {
    this.linkBox.replaceChildren(element("li", "", "looking for related events"));
  }

  /**
   * @param {number} rank
   * @param {Link[]} links
   */
  links(rank, links) {
    const lines = [...links, ...this.inside].map(({ relation, name, at }) => {
      const line = element("li");
      const show = button(`${name} (${durationText(at[3])})`, `show ${name}`, () => this.goTo(rank, at[4]));
      line.append(element("span", "", relation), show);
      return line;
    });
    this.linkBox.replaceChildren(...lines);
  }

  /**
   * @param {Span} span
   * @param {[Rank, SpanAnswer][]} answers
   * @param {HTMLElement[]} actions
   * @param {HTMLElement} area
   */
  span(span, answers, actions, area) {
    const length = span.end - span.start;
    const zero = this.state.view.whole.start;
    const times = `from ${durationText(span.start - zero)} to ${durationText(span.end - zero)}`;
    const heading = element("h2", "", `${durationText(length)} ${times}`);
    const buttons = element("p", "holotrace-timeline-actions");
    buttons.append(...actions);
    const left = element("div");
    left.append(...answers.map(([rank, answer]) => this.rowsTable(rank, answer, length)));
    this.put(heading, buttons, area, left);
    this.root.classList.add("holotrace-timeline-span");
  }

  /**
   * @param {Rank} rank
   * @param {SpanAnswer} answer
   * @param {number} length
   */
  rowsTable(rank, answer, length) {
    const rows = answer.rows.map(([row, busy, events]) => {
      const { device = null, label = "" } = rank.rows.find(({ at }) => at === row) ?? {};
      const name = device === null ? label : `GPU ${device} ${label}`;
      return [name, percentText(busy / length), durationText(busy), countText(events)];
    });
    return this.table(`rank ${rank.number}`, ["row", "busy", "time", "events"], rows);
  }

  /**
   * @param {string} caption
   * @param {string[]} headings
   * @param {(string | HTMLElement)[][]} rows
   */
  table(caption, headings, rows) {
    const table = element("table");
    const head = element("tr");
    head.append(...headings.map((text) => element("th", "", text)));
    table.append(element("caption", "", caption), head);
    for (const cells of rows) {
      const line = element("tr");
      for (const cell of cells) {
        const made = element("td");
        made.append(cell);
        line.append(made);
      }
      table.append(line);
    }
    return table;
  }

  /** Show all findings, the longest first. */
  findings() {
    const findings = this.state.ranks.flatMap((rank) => (rank.findings ?? []).map((finding) => ({ rank, finding })));
    /** @param {{ finding: Finding }} item */
    const lengthOf = ({ finding: { start, end } }) => end - start;
    const list = element("ul", "holotrace-timeline-findings");
    for (const { rank, finding } of findings.sort((one, other) => lengthOf(other) - lengthOf(one))) {
      const line = element("li");
      const chip = element("i");
      chip.style.background = colours.findings[finding.kind];
      const at = durationText(toAxis(rank.clock, finding.start) - this.state.view.whole.start);
      const show = button(finding.text, "show this finding on the timeline", () => this.goToFinding(rank, finding));
      line.append(chip, element("span", "", `rank ${rank.number}, at ${at}`), show);
      list.append(line);
    }
    this.put(element("h2", "", findings.length ? "Findings" : "No findings on the timeline"), list);
  }
}
