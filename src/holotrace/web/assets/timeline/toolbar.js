"use strict";

// What stands above the drawing: the search, what the server is doing, buttons, and what the colours mean.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const TYPED_MS = 250;
  const TOGGLES = {
    path: ["critical path", "what bounds a step, or the span selected"],
    findings: ["findings", "where to look: idle devices, waiting, advice"],
    counters: ["counters", "show all counters, or the first ones"],
  };

  const chip = (colour, text) => {
    const made = timeline.words.element("span", "", text);
    made.prepend(timeline.words.element("i"));
    made.firstChild.style.background = colour;
    return made;
  };

  const ofPath = (rank, goTo) => {
    const { button, duration, percent } = timeline.words;
    const { classes, end, start, window: reach } = rank.path;
    const length = Math.max(end - start, 1);
    const parts = classes.map(([name, ns]) => chip(timeline.colours.path[name], `${name} ${percent(ns / length)}`));
    const heading = button(`critical path of rank ${rank.number}, ${reach}, ${duration(length)}:`, "show it", () => goTo(rank, start, end));
    return [heading, ...parts];
  };

  class Toolbar {
    constructor(isPerfettoHere, actions) {
      const { button, element } = timeline.words;
      this.actions = actions;
      this.legend = element("div", "holotrace-timeline-legend");
      this.status = element("span", "holotrace-timeline-status");
      this.status.setAttribute("role", "status");
      this.toggles = new Map(Object.entries(TOGGLES).map(([name, [text, title]]) => [name, button(text, title, () => actions.toggle(name))]));
      const where = isPerfettoHere ? "on this machine" : `at ${timeline.PERFETTO}; the trace stays in your browser`;
      this.bar = element("div", "holotrace-timeline-bar");
      this.bar.append(
        this.searchField(),
        button("‹", "previous event found (Shift Enter)", () => actions.step(-1)),
        button("›", "next event found (Enter)", () => actions.step(1)),
        this.status,
        ...this.toggles.values(),
        button("fit all", "show everything (0)", () => actions.fitAll()),
        button("Open in Perfetto", where, () => actions.openPerfetto()),
      );
    }

    searchField() {
      this.searchBox = timeline.words.element("input");
      this.searchBox.type = "search";
      this.searchBox.placeholder = "search events (/)";
      this.searchBox.setAttribute("aria-label", "search events");
      let typed = 0;
      this.searchBox.addEventListener("input", () => {
        window.clearTimeout(typed);
        typed = window.setTimeout(() => this.actions.find(this.searchBox.value), TYPED_MS);
      });
      this.searchBox.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
          this.actions.step(event.shiftKey ? -1 : 1);
        } else if (event.key === "Escape") {
          this.actions.leave();
        }
      });
      return this.searchBox;
    }

    // Which overlays are on, and what the path of the first rank that has one consists of, else the classes of events.
    show({ ranks, shown }) {
      this.toggles.forEach((made, name) => made.setAttribute("aria-pressed", String(shown.has(name))));
      const { classes, ofClass } = timeline.colours;
      const rank = shown.has("path") && ranks.find((each) => each.path);
      this.legend.replaceChildren(...(rank ? ofPath(rank, this.actions.goToPath) : classes.map((name) => chip(ofClass(name), name))));
    }
  }

  timeline.Toolbar = Toolbar;
})();
