"use strict";

// Asks the server for what is in view: slices, counters, the critical path; and, once, for findings.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const FINDINGS = ["idle", "waiting", "advice"];
  const SETTLED_MS = 30;

  class Loader {
    constructor(state, { drawn, arranged, say, pathKnown, findingsKnown }) {
      Object.assign(this, { state, drawn, arranged, say, pathKnown, findingsKnown });
      this.view = state.view;
    }

    close() {
      window.clearTimeout(this.timer);
      this.state.ranks.forEach((rank) => rank.request && rank.request.abort());
    }

    // Ask once nothing has moved for a moment.
    later() {
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.state.ranks.forEach((rank) => this.load(rank)), SETTLED_MS);
    }

    // What is in view of a rank, and a quarter of it on either side.
    window(rank) {
      const { start, end, length, pixels } = this.view;
      const first = Math.floor(start - length / 4 - rank.offset);
      return {
        run: this.state.run,
        rank: rank.number,
        start: first,
        end: Math.max(Math.ceil(end + length / 4 - rank.offset), first + 1),
        pixels: timeline.words.clamp(Math.round(pixels * 1.5), 16, 8192),
      };
    }

    async load(rank) {
      if (rank.request) {
        rank.request.abort();
      }
      rank.request = new AbortController();
      const { signal } = rank.request;
      const items = this.view.items.filter((item) => item.rank === rank && this.view.isVisible(item));
      const asked = this.window(rank);
      try {
        await this.slices(rank, items, asked, signal);
        await this.counters(rank, items, asked, signal);
        await this.path(rank, items, asked, signal);
      } catch (error) {
        if (error.name !== "AbortError") {
          this.say(error.message);
        }
      }
    }

    async slices(rank, items, asked, signal) {
      const rows = items.filter((item) => item.kind === "row").map((item) => item.row.at).join(",");
      if (rows) {
        rank.lanes = timeline.server.lanesOf(await timeline.server.ask("slices", { ...asked, rows, text: this.state.pattern }, { signal }));
        this.drawn();
        this.listCounters(rank);
      }
    }

    // After the first slices of a rank, which they would hold up.
    async listCounters(rank) {
      if (rank.hasCounters) {
        return;
      }
      rank.hasCounters = true;
      const shown = new Set(rank.rows.map((row) => row.device));
      try {
        const known = await timeline.server.ask("counters", { run: this.state.run, rank: rank.number });
        const numbered = known.map((counter, at) => ({ ...counter, at }));
        rank.counters = numbered.filter(({ device }) => device === null || shown.has(device));
      } catch (error) {
        this.say(error.message);
      }
      rank.isArranged = true; // from now on its rows stay where they are
      this.arranged();
    }

    async counters(rank, items, asked, signal) {
      const counters = items.filter((item) => item.kind === "counter").map((item) => item.counter);
      if (counters.length) {
        const numbers = counters.map((counter) => counter.at).join(",");
        for (const answer of await timeline.server.ask("counter", { ...asked, numbers }, { signal })) {
          counters.find((each) => each.at === answer.number).series = { ...answer, end: asked.end };
        }
        this.drawn();
      }
    }

    async path(rank, items, asked, signal) {
      if (!this.state.shown.has("path") || !items.length) {
        return;
      }
      const waiting = (text) => this.say(`critical path of rank ${rank.number}: ${text}`);
      const of = this.pathWindow(rank);
      rank.path = timeline.server.pathOf(await timeline.server.ask("path", { ...asked, ...of }, { signal, waiting }));
      this.say("");
      this.pathKnown(rank);
      this.drawn();
    }

    // The path of a span that was asked for, else of the steps chosen, else of what the analysis takes by itself.
    pathWindow(rank) {
      const { pathSpan, steps } = this.state;
      if (pathSpan) {
        return { from: Math.floor(pathSpan.start - rank.offset), to: Math.ceil(pathSpan.end - rank.offset) };
      }
      return steps ? { steps } : {};
    }

    async findings(rank) {
      if (rank.findings) {
        return;
      }
      rank.findings = [];
      for (const kind of FINDINGS) {
        const waiting = (text) => this.say(`findings of rank ${rank.number}: ${text}`);
        try {
          const asked = { run: this.state.run, rank: rank.number, among: this.state.among, kind };
          const found = await timeline.server.ask("findings", asked, { waiting });
          rank.findings.push(...found.map((each) => ({ ...each, kind })));
          this.say("");
        } catch (error) {
          this.say(error.message);
        }
        this.findingsKnown();
      }
    }
  }

  timeline.Loader = Loader;
})();
