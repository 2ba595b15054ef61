// The list of all rows, in which the visitor filters, pins, hides and moves rows, also with the keyboard.

import { button, element } from "../elements.js";
import { countText } from "../../units.js";
import { fullLabel, shortLabel } from "./row_state.js";

/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Row} Row */
/** @typedef {import("./row_state.js").RowState} RowState */
/** @typedef {{ ranks: Rank[], rows: RowState, rowsButton: HTMLElement }} State */

const MOST_LISTED = 400;

export class RowsList {
  /**
   * @param {State} state
   * @param {() => void} changed
   */
  constructor(state, changed) {
    this.state = state;
    this.changed = changed;
    this.toggle = state.rowsButton;
    this.root = element("section", "holotrace-timeline-rows");
    this.root.setAttribute("aria-label", "rows");
    this.root.dataset.keys = "";
    this.root.dataset.escape = "";
    this.root.hidden = true;
    this.filter = this.filterField();
    this.count = element("span", "holotrace-timeline-rows-count");
    this.count.setAttribute("role", "status");
    this.list = element("ul");
    const head = element("p");
    head.append(this.filter, button("show all", "show all rows in their original order", () => this.reset()), this.count);
    this.root.append(head, this.list);
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.open(false);
        this.toggle.focus();
      }
    });
  }

  filterField() {
    const box = element("input");
    box.type = "search";
    box.placeholder = 'filter rows, for example "stream" or "rank 3"';
    box.setAttribute("aria-label", "filter rows");
    box.addEventListener("input", () => {
      this.state.rows.text = box.value;
      this.changed();
    });
    return box;
  }

  /** @param {boolean} isOpen */
  open(isOpen) {
    this.root.hidden = !isOpen;
    this.toggle.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) {
      this.show();
      this.filter.focus();
    }
  }

  reset() {
    this.state.rows.reset();
    this.changed();
  }

  /** Show the current rows, and keep the focus on the same button of the same row. */
  show() {
    const { ranks, rows } = this.state;
    const all = ranks.flatMap((rank) => rows.ordered(rank).map((row) => ({ rank, row })));
    const isShown = (/** @type {{ rank: Rank, row: Row }} */ { rank, row }) =>
      rows.isPinned(rank, row) || (!rows.isHidden(rank, row) && rows.matches(fullLabel(rank, row)));
    const shown = all.filter(isShown).length;
    this.toggle.textContent = shown < all.length ? `rows (${countText(all.length - shown)} hidden)` : "rows";
    if (this.root.hidden) {
      return;
    }
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.row : undefined;
    if (this.filter.value !== rows.text) {
      this.filter.value = rows.text;
    }
    this.count.textContent = `${countText(shown)} of ${countText(all.length)} rows shown`;
    const pinned = rows.pinnedOf(ranks);
    const others = all.filter(({ rank, row }) => !rows.isPinned(rank, row) && rows.matches(fullLabel(rank, row)));
    const listed = [...pinned, ...others].slice(0, MOST_LISTED);
    this.list.replaceChildren(...listed.map(({ rank, row }) => this.line(rank, row)));
    const left = pinned.length + others.length - listed.length;
    if (left > 0) {
      this.list.append(element("li", "", `and ${countText(left)} more; filter them`));
    }
    if (focused) {
      /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-row="${focused}"]`))?.focus();
    }
  }

  /**
   * @param {Rank} rank
   * @param {Row} row
   */
  line(rank, row) {
    const { rows } = this.state;
    const label = `rank ${rank.number}, ${shortLabel(rank, row)}`;
    const [isPinned, isHidden] = [rows.isPinned(rank, row), rows.isHidden(rank, row)];
    const line = element("li");
    const name = element("span", "", label);
    name.title = fullLabel(rank, row);
    line.append(
      name,
      this.button("pin", isPinned, `pin ${label}`, rank, row, () => rows.togglePinned(rank, row)),
      this.button("hide", isHidden, `hide ${label}`, rank, row, () => rows.toggleHidden(rank, row)),
      this.button("↑", null, `move ${label} up`, rank, row, () => rows.shift(this.state.ranks, rank, row, -1)),
      this.button("↓", null, `move ${label} down`, rank, row, () => rows.shift(this.state.ranks, rank, row, 1)),
    );
    return line;
  }

  /**
   * @param {string} text
   * @param {boolean | null} isPressed
   * @param {string} title
   * @param {Rank} rank
   * @param {Row} row
   * @param {() => void} action
   */
  button(text, isPressed, title, rank, row, action) {
    const made = button(text, title, () => {
      action();
      this.changed();
    });
    made.setAttribute("aria-label", title);
    made.dataset.row = `${rank.number}.${row.at}.${text}`;
    if (isPressed !== null) {
      made.setAttribute("aria-pressed", String(isPressed));
    }
    return made;
  }
}
