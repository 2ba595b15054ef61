// Goes from the selected event to the next or previous event on its row or with its name, or to the lane above or
// below.

import { ask } from "../data/server.js";
import { countText } from "../../units.js";

/** @typedef {import("../../types.js").Place} Place */
/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {{ at: Place | null, number: number, count: number }} Neighbour */
/** @typedef {"row" | "name"} Of */
/** @typedef {import("../../types.js").Item} Item */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Row} Row */
/** @typedef {import("../../types.js").Slice} Slice */
/** @typedef {{ rank: Rank, row: Row, depth: number, slices: Slice[] }} Lane */

const OF = { row: "on this row", name: "of this name" };

/**
 * Return a text such as "3 of 7 on this row"; `at` is null if there is no further event in this direction.
 * @param {Of} of
 * @param {1 | -1} by
 * @param {Neighbour} answer
 */
export const stepText = (of, by, { at, count, number }) => {
  const which = `${countText(number)} of ${countText(count)} ${OF[of]}`;
  return at ? which : `${which}; none ${by < 0 ? "before" : "after"} it`;
};

/**
 * Return the lanes of all rows, from top to bottom; a pinned row appears once, at the top.
 * @param {Item[]} items
 * @returns {Lane[]}
 */
const lanesOf = (items) =>
  items.flatMap((item) => {
    if (item.kind !== "row") {
      return [];
    }
    const { rank, row } = item;
    const depths = Array.from({ length: row.isFolded ? 1 : row.lanes }, (_, depth) => depth);
    return depths.map((depth) => ({ rank, row, depth, slices: rank.lanes.get(`${row.at}/${depth}`) ?? [] }));
  });

/**
 * @param {Slice} slice
 * @param {Rank} rank
 * @param {import("../view.js").View} view
 */
const isWithin = ({ start, length }, { offset }, view) => start + offset + length >= view.start && start + offset <= view.end;

/**
 * Return the slice of a lane at a time or, if there is none, the slice nearest to the time.
 * @param {Lane} lane
 * @param {number} time
 */
export const nearest = ({ rank, slices }, time) => {
  /** @param {Slice} slice */
  const away = ({ start, length }) => Math.max(start + rank.offset - time, time - start - rank.offset - length, 0);
  return slices.reduce((best, slice) => (away(slice) < away(best) ? slice : best));
};

export class Stepping {
  /**
   * @param {Timeline} state
   * @param {{ goTo: (rank: number, place: Place) => void, say: (text: string) => void }} actions
   */
  constructor(state, { goTo, say }) {
    this.state = state;
    this.goTo = goTo;
    this.say = say;
    this.isBusy = false; // a key that is held down repeats faster than the server answers
  }

  /**
   * @param {Of} of
   * @param {1 | -1} by
   */
  async step(of, by) {
    const { run, selected } = this.state;
    const rank = selected && this.state.rankOf(selected.rank);
    if (!selected) {
      this.selectFirst();
    }
    if (!rank || this.isBusy) {
      return;
    }
    this.isBusy = true;
    try {
      const rows = rank.rows.map((row) => row.at).join(",");
      /** @type {Neighbour} */
      const answer = await ask("neighbour", { run, rank: rank.number, event: selected.event, of, by, rows });
      this.say(stepText(of, by, answer));
      if (answer.at) {
        this.goTo(rank.number, answer.at);
      }
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
    this.isBusy = false;
  }

  /** Select the first event in view, for visitors who use only the keyboard. */
  selectFirst() {
    const { view } = this.state;
    const inView = lanesOf(view.items).filter(({ rank, row, depth }) => view.shows(rank.number, row.at, depth));
    const first = inView.find((lane) => lane.slices.some((slice) => isWithin(slice, lane.rank, view)));
    const slice = first?.slices.find((one) => isWithin(one, first.rank, view));
    if (first && slice) {
      this.goToSlice(first, slice);
    } else {
      this.say("no event in view");
    }
  }

  /**
   * Find the next lane below or above that has events, and select its event nearest in time.
   * @param {1 | -1} by
   */
  stepLane(by) {
    const { selected, view } = this.state;
    const [row, depth, start] = selected?.at ?? [];
    if (!selected || start === undefined) {
      this.selectFirst();
      return;
    }
    const lanes = lanesOf(view.items);
    const here = lanes.findIndex((lane) => lane.rank.number === selected.rank && lane.row.at === row && lane.depth === depth);
    const time = start + (this.state.rankOf(selected.rank)?.offset ?? 0);
    const beyond = by > 0 ? lanes.slice(here + 1) : lanes.slice(0, Math.max(here, 0)).reverse();
    const next = beyond.find(({ slices }) => slices.length);
    if (next) {
      this.goToSlice(next, nearest(next, time));
    } else {
      this.say(`no events ${by > 0 ? "below" : "above"}`);
    }
  }

  /**
   * @param {Lane} lane
   * @param {Slice} slice
   */
  goToSlice({ rank, row, depth }, { start, length, event }) {
    this.goTo(rank.number, [row.at, depth, start, length, event]);
  }
}
