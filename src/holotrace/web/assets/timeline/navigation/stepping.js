// Goes from the selected event to the next or previous one on its row, or of its name.

import { ask } from "../data/server.js";
import { countText } from "../../units.js";

/** @typedef {import("../../types.js").Place} Place */
/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {{ at: Place | null, number: number, count: number }} Neighbour */
/** @typedef {"row" | "name"} Of */

const OF = { row: "on this row", name: "of this name" };

/**
 * Say which of the events is selected; `at` is null after the last and before the first one.
 * @param {Of} of
 * @param {1 | -1} by
 * @param {Neighbour} answer
 */
export const stepText = (of, by, { at, count, number }) => {
  const which = `${countText(number)} of ${countText(count)} ${OF[of]}`;
  return at ? which : `${which}; none ${by < 0 ? "before" : "after"} it`;
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
    this.isBusy = false; // a key that is held down sends more steps than the server answers
  }

  /**
   * @param {Of} of
   * @param {1 | -1} by
   */
  async step(of, by) {
    const { run, selected } = this.state;
    const rank = selected && this.state.rankOf(selected.rank);
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
}
