// Puts all ranks on one axis: compares the clocks of their hosts, and sets the full and the visible time range.

import { numbersOf } from "../../shell/address.js";
import { compared, fromAxis, toAxis } from "../data/clocks.js";
import { ask } from "../data/server.js";

/** @typedef {import("../../types.js").ClockAnswer} ClockAnswer */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../timeline.js").Timeline} Timeline */

export class RankClocks {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
  }

  /**
   * Set the full time range, which covers all ranks. Unless the visitor has moved the view, also set the visible range.
   * @param {Rank} rank
   */
  measure(rank) {
    const { ranks, view } = this.timeline;
    view.whole = {
      start: Math.min(...ranks.map(({ clock }) => toAxis(clock, 0))),
      end: Math.max(...ranks.map(({ clock, length }) => toAxis(clock, Math.max(length, 1)))),
    };
    if (!view.wasMoved) {
      [view.start, view.end] = this.firstWindow(rank);
    }
  }

  /** Convert the times of all ranks to the clock of one host. */
  async compare() {
    const { ranks, run, toolbar } = this.timeline;
    if (ranks.length < 2) {
      return;
    }
    const said = toolbar.status.textContent ?? "";
    /** @param {string} text */
    const waiting = (text) => this.timeline.say(`clocks of the hosts: ${text}`);
    try {
      const numbers = ranks.map(({ number }) => number).join(",");
      /** @type {ClockAnswer[]} */
      const answers = await ask("clocks", { run, ranks: numbers }, { waiting });
      this.timeline.say(said);
      if (!this.timeline.isClosed && answers.length) {
        this.use(answers);
      }
    } catch (error) {
      this.timeline.sayError(error);
    }
  }

  /**
   * Correct the clocks of the ranks with the server's answers, and update the view. If the visitor has moved the view,
   * keep showing the same times of the first rank.
   * @param {ClockAnswer[]} answers
   */
  use(answers) {
    const { address, attributes, movement, ranks, selected, view } = this.timeline;
    const [first] = ranks;
    const middle = (view.start + view.end) / 2;
    const time = fromAxis(first.clock, middle);
    for (const rank of ranks) {
      const answer = answers.find(({ rank: number }) => number === rank.number);
      rank.clock = answer ? compared(rank.clock, answer, rank.origin) : rank.clock;
    }
    this.measure(first);
    if (view.wasMoved) {
      const by = toAxis(first.clock, time) - middle;
      view.move(view.start + by, view.end + by);
    }
    if (attributes.event && selected?.at && !address.window) {
      movement.show(selected.rank, selected.at);
    }
    this.timeline.arranged();
  }

  /**
   * Return the time range in the address, else the range of the selected steps, else the whole range.
   * @param {Rank} rank
   */
  firstWindow({ clock, steps }) {
    const { address, steps: wanted, view } = this.timeline;
    const requested = address.window;
    if (requested) {
      return [requested.start, requested.end];
    }
    const numbers = wanted ? new Set(numbersOf(wanted)) : new Set();
    const chosen = steps.filter(([, , number]) => numbers.has(number));
    const { whole } = view;
    const ends = chosen.length ? [chosen[0][0], chosen[chosen.length - 1][1]] : null;
    return ends ? ends.map((time) => toAxis(clock, time)) : [whole.start, whole.end];
  }
}
