"use strict";

// Finds events by a part of their name, on all ranks that are drawn, and goes from one to the next.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  class Search {
    constructor(state, { changed, goTo, say }) {
      this.state = state;
      this.changed = changed;
      this.goTo = goTo;
      this.say = say;
      this.found = [];
      this.at = -1;
      this.total = 0;
    }

    // Return the longest event found.
    async find(text) {
      const pattern = text.trim().toLowerCase();
      this.state.pattern = pattern;
      [this.found, this.at, this.total] = [[], -1, 0];
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
        this.say(error.message);
        return null;
      }
    }

    ask(rank, text) {
      const rows = rank.rows.map((row) => row.at).join(",");
      return timeline.server.ask("search", { run: this.state.run, rank: rank.number, rows, text });
    }

    keep(ranks, answers) {
      const placed = (rank, at) => ({ rank: rank.number, event: at[4], length: at[3], time: at[2] + rank.offset });
      const all = answers.flatMap((answer, number) => answer.found.map((at) => placed(ranks[number], at)));
      this.found = all.sort((one, other) => one.time - other.time);
      this.total = answers.reduce((sum, answer) => sum + answer.count, 0);
      this.say(`${timeline.words.count(this.total)} found`);
      const longest = answers.flatMap((answer, number) => (answer.longest ? [placed(ranks[number], answer.longest)] : []));
      return longest.sort((one, other) => other.length - one.length)[0] || null;
    }

    step(by) {
      if (!this.found.length) {
        return;
      }
      const from = this.at < 0 && by < 0 ? 0 : this.at;
      this.at = (from + by + this.found.length) % this.found.length;
      const { rank, event } = this.found[this.at];
      const { count } = timeline.words;
      const isCut = this.found.length < this.total;
      this.say(`${count(this.at + 1)} of ${count(this.total)} found${isCut ? `; the first ${count(this.found.length)} are gone through` : ""}`);
      this.goTo(rank, event);
    }
  }

  timeline.Search = Search;
})();
