// The toolbar above the canvas: search, status, buttons and legend.

import * as colours from "../drawing/colours.js";
import { button, element } from "../elements.js";
import { PERFETTO } from "../data/perfetto.js";
import { durationText, percentText } from "../../units.js";

/** @typedef {import("../../types.js").CriticalPath} CriticalPath */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {(rank: Rank, start: number, end: number) => void} GoToPath */
/**
 * @typedef {object} Actions
 * @property {(text: string) => void} find
 * @property {(by: 1 | -1) => void} step
 * @property {() => void} leave
 * @property {(name: string) => void} toggle
 * @property {() => void} fitAll
 * @property {GoToPath} goToPath
 * @property {() => void} openPerfetto
 */

const TYPED_MS = 250;
const TOGGLES = {
  path: ["critical path", "show the events that determine the length of a step, or of the selected span"],
  findings: ["findings", "show where time is lost (idle devices, waiting), with advice"],
  counters: ["counters", "show all counters of each rank, not only the first few"],
  flags: ["flags", "list the flags; a click on the ruler sets one"],
};

/**
 * @param {string} colour
 * @param {string} text
 */
const chip = (colour, text) => {
  const made = element("span", "", text);
  const mark = element("i");
  mark.style.background = colour;
  made.prepend(mark);
  return made;
};

/**
 * @param {Rank} rank
 * @param {CriticalPath} path
 * @param {GoToPath} goTo
 */
const legendOfPath = (rank, { classes, end, start, window: reach }, goTo) => {
  const length = Math.max(end - start, 1);
  const heading = `critical path of rank ${rank.number}, ${reach}, ${durationText(length)}:`;
  return [
    button(heading, "show this path on the timeline", () => goTo(rank, start, end)),
    ...classes.map(([name, ns]) => chip(colours.path[name], `${name} ${percentText(ns / length)}`)),
  ];
};

export class Toolbar {
  /**
   * @param {boolean} isPerfettoHere
   * @param {Actions} actions
   */
  constructor(isPerfettoHere, actions) {
    this.actions = actions;
    this.legend = element("div", "holotrace-timeline-legend");
    this.legend.tabIndex = 0; // on narrow screens it scrolls
    this.legend.setAttribute("role", "group");
    this.legend.setAttribute("aria-label", "what the colours mean");
    this.status = element("span", "holotrace-timeline-status");
    this.status.setAttribute("role", "status");
    this.toggles = new Map(
      Object.entries(TOGGLES).map(([name, [text, title]]) => [name, button(text, title, () => actions.toggle(name))]),
    );
    this.searchBox = this.searchField();
    const where = isPerfettoHere ? "on this machine" : `at ${PERFETTO}; the trace stays in your browser`;
    this.bar = element("div", "holotrace-timeline-bar");
    this.bar.append(
      this.searchBox,
      button("‹", "previous match (Shift Enter)", () => actions.step(-1)),
      button("›", "next match (Enter)", () => actions.step(1)),
      this.status,
      ...this.toggles.values(),
      button("fit all", "show everything (0)", () => actions.fitAll()),
      button("Open in Perfetto", where, () => actions.openPerfetto()),
    );
  }

  /** @param {HTMLElement[]} parts */
  add(...parts) {
    this.status.after(...parts);
  }

  searchField() {
    const box = element("input");
    box.type = "search";
    box.placeholder = "search events (/)";
    box.setAttribute("aria-label", "search events");
    let typed = 0;
    box.addEventListener("input", () => {
      window.clearTimeout(typed);
      typed = window.setTimeout(() => this.actions.find(box.value), TYPED_MS);
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        this.actions.step(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        this.actions.leave();
      }
    });
    return box;
  }

  /**
   * Show active overlays as pressed buttons. If the timeline shows critical paths, the legend explains the path of the
   * first rank that has one; otherwise, it explains the classes of events.
   * @param {{ ranks: Rank[], shown: Set<string>, panel: { shown: string } }} state
   */
  show({ panel, ranks, shown }) {
    /** @param {string} name */
    const isOn = (name) => shown.has(name) || panel.shown === name;
    this.toggles.forEach((made, name) => made.setAttribute("aria-pressed", String(isOn(name))));
    const rank = shown.has("path") ? ranks.find(({ path }) => path) : undefined;
    const legend = rank?.path
      ? legendOfPath(rank, rank.path, this.actions.goToPath)
      : colours.classes.map((name) => chip(colours.ofClass(name), name));
    this.legend.replaceChildren(...legend);
  }
}
