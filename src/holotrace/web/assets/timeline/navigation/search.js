// Searches the shown ranks for events whose name contains a text, and steps from match to match.

import { toAxis } from "../data/clocks.js";
import { ask } from "../data/server.js";
import { countText } from "../../units.js";

/** @typedef {import("../../types.js").Place} Place */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").SearchAnswer} SearchAnswer */
/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {{ rank: number, event: number, length: number, time: number }} Match */

/**
 * @param {Rank} rank
 * @param {Place} at
 * @returns {Match}
 */
const matchOf = (rank, at) => ({ rank: rank.number, event: at[4], length: at[3], time: toAxis(rank.clock, at[2]) });

export class Search {
  /**
   * @param {Timeline} state
   * @param {{ changed: () => void, goTo: (rank: number, event: number) => void, say: (text: string) => void }} actions
   */
  constructor(state, { changed, goTo, say }) {
    this.state = state;
    this.changed = changed;
    this.goTo = goTo;
    this.say = say;
    /** @type {Match[]} */
    this.matches = [];
    this.at = -1;
    this.total = 0;
  }

  /**
   * Search for events whose name contains a text; return the longest of them.
   * @param {string} text
   */
  async find(text) {
    const pattern = text.trim().toLowerCase();
    this.state.pattern = pattern;
    this.matches = [];
    this.at = -1;
    this.total = 0;
    this.changed();
    if (!pattern) {
      this.say("");
      return null;
    }
    try {
      const ranks = [...this.state.ranks];
      const answers = await Promise.all(ranks.map((rank) => this.ask(rank, pattern)));
      return this.state.pattern === pattern ? this.keep(ranks, answers) : null;
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
      return null;
    }
  }

  /**
   * @param {Rank} rank
   * @param {string} text
   * @returns {Promise<SearchAnswer>}
   */
  ask(rank, text) {
    const rows = rank.rows.map((row) => row.at).join(",");
    return ask("search", { run: this.state.run, rank: rank.number, rows, text });
  }

  /**
   * @param {Rank[]} ranks
   * @param {SearchAnswer[]} answers
   */
  keep(ranks, answers) {
    const matches = answers.flatMap((answer, number) => answer.found.map((at) => matchOf(ranks[number], at)));
    this.matches = matches.sort((one, other) => one.time - other.time);
    this.total = answers.reduce((sum, answer) => sum + answer.count, 0);
    this.say(`${countText(this.total)} found`);
    const longest = answers.flatMap(({ longest: at }, number) => (at ? [matchOf(ranks[number], at)] : []));
    return longest.sort((one, other) => other.length - one.length)[0] ?? null;
  }

  /** @param {1 | -1} by */
  step(by) {
    if (!this.matches.length) {
      return;
    }
    const from = this.at < 0 && by < 0 ? 0 : this.at;
    this.at = (from + by + this.matches.length) % this.matches.length;
    const { rank, event } = this.matches[this.at];
    const isCut = this.matches.length < this.total;
    const limit = isCut ? `; only the first ${countText(this.matches.length)} can be stepped through` : "";
    this.say(`${countText(this.at + 1)} of ${countText(this.total)} found${limit}`);
    this.goTo(rank, event);
  }
}
