// Stores which rows of the timeline are shown, and in which order. The address contains this state as a text such as:
//
//   pin.0.3,1.2~hide.0.5~order.0.3.1.2~find.stream
//
// Row 3 of rank 0 and row 2 of rank 1 are pinned to the top. Row 5 of rank 0 is hidden. On rank 0, rows 3, 1
// and 2 come first, in this order. The filter shows only rows with `stream` in their label.

/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Row} Row */
/** @typedef {{ rank: Rank, row: Row }} RankRow */

const NUMBERS = /^\d{1,9}(\.\d{1,9})+$/;

/**
 * @param {number} rank
 * @param {number} row
 */
const keyOf = (rank, row) => `${rank}.${row}`;

/**
 * Return the text that the filter searches: the rank, process, device and label of a row.
 * @param {Rank} rank
 * @param {Row} row
 */
export const fullLabel = (rank, row) =>
  `rank ${rank.number} ${row.process} ${row.device === null ? "" : `GPU ${row.device} `}${row.label}`;

/**
 * @param {Rank} rank
 * @param {Row} row
 */
export const shortLabel = (rank, row) => (row.device === null ? row.label : `GPU ${row.device} ${row.label}`);

export class RowState {
  /** @param {string} [text] */
  constructor(text = "") {
    /** @type {string[]} */
    this.pinned = [];
    /** @type {Set<string>} */
    this.hidden = new Set();
    /** @type {Map<number, number[]>} */
    this.order = new Map();
    this.text = "";
    for (const part of this.textPart(text).split("~")) {
      this.read(part);
    }
  }

  /**
   * Store the filter that `text` ends with, and return the part of `text` before the filter. The filter is the last
   * part because it may contain any character, including the separator "~".
   * @param {string} text
   */
  textPart(text) {
    const at = `~${text}`.indexOf("~find.");
    this.text = at < 0 ? "" : text.slice(at + 5);
    return at < 0 ? text : text.slice(0, Math.max(at - 1, 0));
  }

  /** @param {string} part */
  read(part) {
    const [, name, list] = part.match(/^(pin|hide|order)\.(.*)$/) ?? [];
    const keys = (list ?? "").split(",").filter((key) => NUMBERS.test(key));
    if (name === "order") {
      keys.map((key) => key.split(".").map(Number)).forEach(([rank, ...rows]) => this.order.set(rank, rows));
      return;
    }
    const rows = keys.filter((key) => key.split(".").length === 2);
    if (name === "pin") {
      this.pinned = rows;
    } else if (name === "hide") {
      this.hidden = new Set(rows);
    }
  }

  toString() {
    const order = [...this.order].map(([rank, rows]) => [rank, ...rows].join("."));
    const parts = { pin: this.pinned, hide: [...this.hidden], order };
    const lists = Object.entries(parts).flatMap(([name, keys]) => (keys.length ? [`${name}.${keys.join(",")}`] : []));
    return [...lists, ...(this.text ? [`find.${this.text}`] : [])].join("~");
  }

  /**
   * @param {Rank} rank
   * @param {Row} row
   */
  isPinned(rank, row) {
    return this.pinned.includes(keyOf(rank.number, row.at));
  }

  /**
   * @param {Rank} rank
   * @param {Row} row
   */
  isHidden(rank, row) {
    return this.hidden.has(keyOf(rank.number, row.at));
  }

  /**
   * Return whether a label contains all words of the filter, ignoring case.
   * @param {string} label
   */
  matches(label) {
    const lower = label.toLowerCase();
    return this.text.toLowerCase().split(/\s+/).every((word) => lower.includes(word));
  }

  /**
   * Return all rows of a rank, including hidden rows, in the chosen order.
   * @param {Rank} rank
   */
  ordered(rank) {
    const places = new Map((this.order.get(rank.number) ?? []).map((row, place) => [row, place]));
    /** @param {Row} row */
    const placeOf = (row) => places.get(row.at) ?? places.size + row.at;
    return [...rank.rows].sort((one, other) => placeOf(one) - placeOf(other));
  }

  /**
   * Return the rows of a rank that are shown below its heading.
   * @param {Rank} rank
   */
  shown(rank) {
    return this.ordered(rank).filter(
      (row) => !this.isPinned(rank, row) && !this.isHidden(rank, row) && this.matches(fullLabel(rank, row)),
    );
  }

  /**
   * Return the pinned rows, in the order of pinning.
   * @param {Rank[]} ranks
   * @returns {RankRow[]}
   */
  pinnedOf(ranks) {
    const rows = ranks.flatMap((rank) => rank.rows.map((row) => ({ rank, row })));
    const known = new Map(rows.map((item) => [keyOf(item.rank.number, item.row.at), item]));
    return this.pinned.flatMap((key) => known.get(key) ?? []);
  }

  /**
   * Pin a row below the other pinned rows, or unpin it.
   * @param {Rank} rank
   * @param {Row} row
   */
  togglePinned(rank, row) {
    const key = keyOf(rank.number, row.at);
    const others = this.pinned.filter((other) => other !== key);
    this.pinned = others.length < this.pinned.length ? others : [...others, key];
    this.hidden.delete(key);
  }

  /**
   * @param {Rank} rank
   * @param {Row} row
   */
  toggleHidden(rank, row) {
    const key = keyOf(rank.number, row.at);
    if (!this.hidden.delete(key)) {
      this.hidden.add(key);
      this.pinned = this.pinned.filter((other) => other !== key);
    }
  }

  /**
   * Show a row that is hidden or filtered out.
   * @param {Rank} rank
   * @param {Row} row
   */
  reveal(rank, row) {
    this.hidden.delete(keyOf(rank.number, row.at));
    this.text = this.matches(fullLabel(rank, row)) ? this.text : "";
  }

  /**
   * Move a row above the row `before`. If `before` is pinned, the moved row becomes pinned too; otherwise, it is
   * unpinned. If `before` is null, the moved row becomes the last row of its rank.
   * @param {Rank} rank
   * @param {Row} row
   * @param {RankRow | null} before
   */
  move(rank, row, before) {
    const key = keyOf(rank.number, row.at);
    if (before && this.isPinned(before.rank, before.row)) {
      const others = this.pinned.filter((other) => other !== key);
      others.splice(others.indexOf(keyOf(before.rank.number, before.row.at)), 0, key);
      this.pinned = others;
      return;
    }
    const rows = this.ordered(rank).flatMap(({ at }) => (at === row.at ? [] : [at]));
    const place = before?.rank === rank ? rows.indexOf(before.row.at) : rows.length;
    rows.splice(place, 0, row.at);
    this.order.set(rank.number, rows);
    this.pinned = this.pinned.filter((other) => other !== key);
  }

  /**
   * Move a row up or down by one among the pinned rows, or among the shown rows of its rank.
   * @param {Rank[]} ranks
   * @param {Rank} rank
   * @param {Row} row
   * @param {1 | -1} by
   */
  shift(ranks, rank, row, by) {
    const isPinned = this.isPinned(rank, row);
    const rows = isPinned ? this.pinnedOf(ranks) : this.shown(rank).map((other) => ({ rank, row: other }));
    const at = rows.findIndex((other) => other.rank === rank && other.row === row);
    const next = rows[by < 0 ? at - 1 : at + 2];
    if (at < 0 || at + by < 0 || at + by >= rows.length) {
      return;
    }
    if (next) {
      this.move(rank, row, next);
    } else if (isPinned) {
      const key = keyOf(rank.number, row.at);
      this.pinned = [...this.pinned.filter((other) => other !== key), key];
    } else {
      this.move(rank, row, null);
    }
  }

  reset() {
    this.pinned = [];
    this.hidden.clear();
    this.order.clear();
    this.text = "";
  }
}
