// The timeline: a canvas that requests only the data that its pixels can show. This file connects these parts:
//
//   view      visible time range and layout        input      mouse and keys
//   pointing  item under the pointer               search     matches, one after the other
//   data/     requests and their answers, and the clocks of ranks
//   drawing/  the canvas and its colours
//   window/   what surrounds the canvas: toolbar and panel

import * as address from "../shell/address.js";
import { compared, fromAxis, offsetAt, recorded, toAxis } from "./data/clocks.js";
import { Loader } from "./data/loader.js";
import { openPerfetto } from "./data/perfetto.js";
import { ask } from "./data/server.js";
import { Painter } from "./drawing/painter.js";
import { Panel } from "./window/panel.js";
import { Sash } from "./window/sash.js";
import { Toolbar } from "./window/toolbar.js";
import { AreaBox, areasOf, rowsIn, timesIn } from "./area/area.js";
import { RowDrag, buttonAt } from "./rows/row_marks.js";
import { RowState } from "./rows/row_state.js";
import { RowsList } from "./rows/rows_list.js";
import { button, element } from "./elements.js";
import { Input } from "./input.js";
import { Pointing } from "./pointing.js";
import { Search } from "./search.js";
import { SIZES, View, labelsWidth } from "./view.js";

/** @typedef {import("../types.js").ClockAnswer} ClockAnswer */
/** @typedef {import("../types.js").EventAnswer} EventAnswer */
/** @typedef {import("../types.js").Link} Link */
/** @typedef {import("../types.js").Place} Place */
/** @typedef {import("../types.js").Rank} Rank */
/** @typedef {import("../types.js").RankAnswer} RankAnswer */
/** @typedef {import("../types.js").Pointer} Pointer */
/** @typedef {import("../types.js").Row} Row */
/** @typedef {import("../types.js").RowItem} RowItem */
/** @typedef {import("../types.js").Selected} Selected */
/** @typedef {import("../types.js").Span} Span */
/** @typedef {import("../types.js").SpanAnswer} SpanAnswer */

const OVERLAYS = ["path", "findings"];
const MOMENT_NS = 500_000;
const LEAST_MARGIN_NS = 1_000;
const LEAST_WIDTH = 320;

/** @param {unknown} error */
const messageOf = (error) => /** @type {Error} */ (error).message;

export class Timeline {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.attributes = { ...root.dataset };
    this.run = this.attributes.run ?? "";
    this.among = this.attributes.ranks ?? "";
    this.steps = this.attributes.steps ?? "";
    this.devices = this.attributes.devices ? new Set(address.numbersOf(this.attributes.devices)) : null;
    /** @type {Rank[]} */
    this.ranks = [];
    /** The origin of the first rank, from which all times of the view count. */
    this.base = 0n;
    this.shown = new Set((this.attributes.show ?? "").split(",").filter((name) => OVERLAYS.includes(name)));
    this.pattern = "";
    this.rows = new RowState(this.attributes.rows);
    /** @type {RowDrag | null} */
    this.rowDrag = null;
    /** The row whose label is under the pointer. @type {Row | null} */
    this.hovered = null;
    /** @type {Selected | null} */
    this.selected = null;
    /** @type {Link[]} */
    this.links = [];
    /** @type {Span | null} */
    this.span = null;
    /** @type {Span | null} */
    this.pathSpan = null;
    /** @type {{ rank: number, start: number, end: number } | null} */
    this.focus = null;
    this.isClosed = false;
    this.isDrawing = false;

    /** @param {string} text */
    const say = (text) => this.say(text);
    /**
     * @param {number} rank
     * @param {number} event
     */
    const goTo = (rank, event) => this.goTo(rank, event);
    this.view = new View();
    this.frame = element("div", "holotrace-timeline-view");
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("aria-label", "timeline: zoom with W and S, pan with A and D");
    this.pointing = new Pointing(this.view);
    this.rowsList = new RowsList(this, () => this.rowsChanged());
    this.frame.append(this.canvas, this.pointing.tip, this.rowsList.root);
    this.search = new Search(this, { changed: () => this.changed(), goTo, say });
    this.panel = new Panel(this, {
      close: () => this.unselect(),
      goTo,
      goToFinding: (rank, finding) => this.goToFinding(rank, finding),
    });
    this.loader = new Loader(this, {
      drawn: () => this.draw(),
      arranged: () => this.arranged(),
      say,
      pathKnown: () => this.toolbar.show(this),
      findingsKnown: () => this.findingsKnown(),
    });
    this.painter = new Painter(this.canvas, this);
    this.input = new Input(this.canvas, this.view, this.actions());
    this.toolbar = new Toolbar(Boolean(this.attributes.perfetto), {
      find: (text) => this.search.find(text),
      step: (by) => this.search.step(by),
      leave: () => this.canvas.focus(),
      toggle: (name) => this.toggle(name),
      fitAll: () => this.fitAll(),
      goToPath: (rank, start, end) => this.showTimes(toAxis(rank.clock, start), toAxis(rank.clock, end), 0.02),
      openPerfetto: () => this.openPerfetto(),
    });
    this.toolbar.add(this.rowsList.toggle);
    const sash = new Sash(this.root, this.panel.root.id);
    this.root.append(this.toolbar.bar, this.toolbar.legend, this.frame, sash.bar, this.panel.root);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.frame);
    this.themes = new MutationObserver(() => this.draw());
    this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mantine-color-scheme"] });
    this.toolbar.show(this);
    this.resize();
    this.open().catch((error) => this.say(error.message));
  }

  /** @returns {import("./input.js").Actions} */
  actions() {
    return {
      moved: () => this.changed(),
      hover: (pointer) => this.hover(pointer),
      dragRow: (item, pointer) => this.dragRow(item, pointer),
      dropRow: () => this.dropRow(),
      click: (x, y) => this.click(x, y),
      span: (span) => this.setSpan(span),
      spanDone: () => this.describeSpan(),
      fitSelected: () => this.fitSelected(),
      fitAll: () => this.fitAll(),
      markSelected: () => this.markSelected(),
      toSearch: () => this.toolbar.searchBox.focus(),
      unselect: () => this.unselect(),
    };
  }

  close() {
    this.isClosed = true;
    this.sizes.disconnect();
    this.themes.disconnect();
    this.loader.close();
    this.input.held.clear();
    this.root.replaceChildren();
  }

  /** @param {string} text */
  say(text) {
    this.toolbar.status.textContent = text;
  }

  /** Load the ranks one after the other, and draw each rank as soon as it arrives. */
  async open() {
    this.say("opening");
    const known = await ask("ranks", { run: this.run, ranks: this.among });
    const { at = "", event: requested = "" } = this.attributes;
    const [wanted, event] = (requested.match(/^\d+:\d+$/) ?? at.match(/^\d+(?=:)/))?.[0].split(":").map(Number) ?? [];
    const ranks = wanted === undefined || known.ranks.includes(wanted) ? known.ranks : [wanted, ...known.ranks];
    for (const number of ranks) {
      /** @param {string} text */
      const waiting = (text) => this.say(`rank ${number}: ${text}`);
      const answer = await ask("rows", { run: this.run, rank: number }, { waiting });
      if (this.isClosed) {
        return;
      }
      this.addRank(number, answer);
      if (number === wanted && event !== undefined) {
        await this.goTo(number, event);
      }
    }
    const left = known.count - known.ranks.length;
    this.say(left > 0 ? `${known.ranks.length} of ${known.count} ranks shown; choose others above` : "");
    await this.compareClocks();
    await this.goToRequested();
    this.loadFindings(); // after the ranks, because comparing ranks takes longer than drawing them
  }

  /**
   * @param {number} number
   * @param {RankAnswer} answer
   */
  addRank(number, { origin, length, steps, rows }) {
    this.base = this.ranks.length ? this.base : BigInt(origin);
    const clock = recorded(BigInt(origin), this.base);
    const shown = rows
      .map((row, at) => ({ ...row, at }))
      .filter(({ device }) => !this.devices || device === null || this.devices.has(device));
    /** @type {Rank} */
    const rank = {
      number,
      origin: BigInt(origin),
      clock,
      offset: clock.recorded,
      length,
      steps,
      rows: shown,
      lanes: new Map(),
      counters: [],
      path: null,
    };
    this.ranks.push(rank);
    this.measure(rank);
    this.view.isOpen = true;
    this.arranged();
  }

  /**
   * Set the range of all ranks and, unless somebody has moved it, the visible one.
   * @param {Rank} rank
   */
  measure(rank) {
    const { ranks, view } = this;
    view.whole = {
      start: Math.min(...ranks.map(({ clock }) => toAxis(clock, 0))),
      end: Math.max(...ranks.map(({ clock, length }) => toAxis(clock, Math.max(length, 1)))),
    };
    if (!view.wasMoved) {
      [view.start, view.end] = this.firstWindow(rank);
    }
  }

  /** Put ranks of several hosts on the clock of one of them. */
  async compareClocks() {
    const { ranks } = this;
    if (ranks.length < 2) {
      return;
    }
    const said = this.toolbar.status.textContent ?? "";
    /** @param {string} text */
    const waiting = (text) => this.say(`clocks of the hosts: ${text}`);
    try {
      const numbers = ranks.map(({ number }) => number).join(",");
      /** @type {ClockAnswer[]} */
      const answers = await ask("clocks", { run: this.run, ranks: numbers }, { waiting });
      this.say(said);
      if (!this.isClosed && answers.length) {
        this.useClocks(answers);
      }
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  /**
   * The first rank keeps its place in a view that was moved.
   * @param {ClockAnswer[]} answers
   */
  useClocks(answers) {
    const { ranks, view } = this;
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
    if (this.attributes.event && this.selected?.at) {
      this.show(this.selected.rank, this.selected.at);
    }
    this.arranged();
  }

  /**
   * Return the time range of the selected steps, or of the whole rank.
   * @param {Rank} rank
   */
  firstWindow({ clock, steps }) {
    const numbers = this.steps ? new Set(address.numbersOf(this.steps)) : new Set();
    const chosen = steps.filter(([, , number]) => numbers.has(number));
    const { whole } = this.view;
    const ends = chosen.length ? [chosen[0][0], chosen[chosen.length - 1][1]] : null;
    return ends ? ends.map((time) => toAxis(clock, time)) : [whole.start, whole.end];
  }

  arranged() {
    this.view.arrange(this.ranks, this.shown, this.rows);
    this.rowsList.show();
    this.changed();
  }

  rowsChanged() {
    this.remember();
    this.arranged();
  }

  changed() {
    if (this.view.isOpen && !this.isClosed) {
      this.view.keepScroll();
      this.ranks.forEach((rank) => {
        rank.offset = offsetAt(rank.clock, (this.view.start + this.view.end) / 2);
      });
      this.draw();
      this.loader.later();
    }
  }

  draw() {
    if (!this.view.isOpen || this.isDrawing) {
      return;
    }
    this.isDrawing = true;
    window.requestAnimationFrame(() => {
      this.isDrawing = false;
      if (!this.isClosed) {
        this.painter.paint();
        this.root.dataset.drawn = String(this.ranks.filter((rank) => rank.lanes.size).length);
      }
    });
  }

  /** Fit the canvas to the window. A selected event that is in view stays in view. */
  resize() {
    const { view } = this;
    const place = this.selected?.at;
    const wasShown = this.selected && place && view.shows(this.selected.rank, place[0], place[1]);
    view.width = Math.max(this.frame.clientWidth, LEAST_WIDTH);
    view.height = this.frame.clientHeight;
    SIZES.labels = labelsWidth(view.width);
    if (!this.painter.fit()) {
      return;
    }
    if (this.selected && place && wasShown) {
      view.nudge(this.selected.rank, place[0], place[1]);
    }
    this.arranged(); // the height decides whether pinned rows stay at the top
    if (view.isOpen) {
      this.painter.paint(); // now, because fitting has cleared the canvas
    }
  }

  /** @param {number} number */
  rankOf(number) {
    return this.ranks.find((rank) => rank.number === number);
  }

  // Overlays

  /** @param {string} name */
  toggle(name) {
    const isOn = !this.shown.has(name);
    this.shown[isOn ? "add" : "delete"](name);
    this.pathSpan = name === "path" ? (isOn && this.span ? { ...this.span } : null) : this.pathSpan;
    this.ranks.forEach((rank) => {
      rank.path = name === "path" ? null : rank.path;
    });
    if (name === "findings") {
      this.listFindings(isOn);
    }
    this.toolbar.show(this);
    this.remember();
    this.arranged();
  }

  pathOfSpan() {
    this.shown.delete("path");
    this.toggle("path");
  }

  /** @param {boolean} isOn */
  listFindings(isOn) {
    this.select(null);
    if (isOn) {
      this.panel.findings();
      this.loadFindings();
    }
  }

  loadFindings() {
    this.ranks.filter(() => this.shown.has("findings")).forEach((rank) => this.loader.findings(rank));
  }

  /** Show findings when they arrive, unless the visitor has selected something meanwhile. */
  findingsKnown() {
    if (!this.selected && !this.span && this.shown.has("findings")) {
      this.panel.findings();
    }
    this.draw();
  }

  // Selection

  /**
   * @param {number | null} rank
   * @param {number} [event]
   */
  async select(rank, event = -1) {
    this.links = [];
    this.span = null;
    this.focus = null;
    /** @type {Selected | null} */
    const selected = rank === null ? null : { rank, event };
    this.selected = selected;
    this.remember();
    if (!selected) {
      this.panel.hide();
      this.draw();
      return null;
    }
    const parameters = { run: this.run, rank: selected.rank, event };
    try {
      /** @type {EventAnswer} */
      const answer = await ask("event", parameters);
      if (this.selected !== selected) {
        return null;
      }
      selected.at = answer.at;
      this.panel.event(selected.rank, answer);
      this.draw();
      this.follow(selected, parameters);
      return answer;
    } catch (error) {
      this.say(messageOf(error));
      return null;
    }
  }

  /**
   * @param {Selected} selected
   * @param {{ run: string, rank: number, event: number }} parameters
   */
  async follow(selected, parameters) {
    this.panel.searching();
    try {
      const links = await ask("links", parameters);
      if (this.selected === selected) {
        this.links = links;
        this.panel.links(selected.rank, links);
        this.draw();
      }
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  /** Clear the selection; return whether anything was selected. */
  unselect() {
    const wasSelected = Boolean(this.selected || this.span || this.focus) || !this.panel.root.hidden;
    if (wasSelected) {
      this.select(null);
    }
    return wasSelected;
  }

  /**
   * @param {number} rank
   * @param {number} event
   */
  async goTo(rank, event) {
    const answer = await this.select(rank, event);
    if (answer) {
      this.show(rank, answer.at);
    }
  }

  /**
   * Select an event and show it, while the panel keeps what it lists.
   * @param {number} rank
   * @param {number} event
   */
  async point(rank, event) {
    const selected = { rank, event };
    this.selected = selected;
    this.links = [];
    this.remember();
    try {
      /** @type {EventAnswer} */
      const { at } = await ask("event", { run: this.run, rank, event });
      if (this.selected === selected) {
        Object.assign(selected, { at });
        this.show(rank, at);
      }
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  /**
   * Zoom and scroll to an event.
   * @param {number} number
   * @param {Place} place
   */
  show(number, [row, depth, start, length]) {
    const rank = this.rankOf(number);
    if (rank) {
      const [item] = rank.rows.filter(({ at }) => at === row);
      rank.isFolded = false;
      this.rows.reveal(rank, item);
      this.view.arrange(this.ranks, this.shown, this.rows);
      this.rowsList.show();
      this.view.reveal(number, row, depth);
      this.showTimes(toAxis(rank.clock, start), toAxis(rank.clock, start + length));
    }
  }

  /**
   * Zoom to a time range with a margin on either side, given as a share of its length.
   * @param {number} start
   * @param {number} end
   * @param {number} [share]
   */
  showTimes(start, end, share = 1.5) {
    const margin = Math.max(end - start, LEAST_MARGIN_NS) * share;
    this.view.move(start - margin, end + margin);
    this.changed();
  }

  /**
   * @param {Rank} rank
   * @param {{ start: number, end: number }} finding
   */
  goToFinding(rank, { start, end }) {
    this.focus = { rank: rank.number, start: toAxis(rank.clock, start), end: toAxis(rank.clock, end) };
    const item = this.view.items.find((candidate) => candidate.rank === rank && !candidate.isPinned);
    if (item && !this.view.isVisible(item)) {
      this.view.scroll = item.top;
    }
    const margin = start === end ? MOMENT_NS : 0;
    this.showTimes(this.focus.start - margin, this.focus.end + margin);
  }

  fitSelected() {
    if (this.span) {
      this.view.move(this.span.start, this.span.end);
      this.changed();
    } else if (this.selected?.at) {
      this.show(this.selected.rank, this.selected.at);
    }
  }

  fitAll() {
    if (this.view.isOpen) {
      this.view.move(this.view.whole.start, this.view.whole.end);
      this.changed();
    }
  }

  // Selected span of time

  /** @param {Span} span */
  setSpan(span) {
    this.selected = null;
    this.links = [];
    this.focus = null;
    this.span = span;
    this.draw();
  }

  /** Select the time span of the selected event. */
  markSelected() {
    const { selected } = this;
    const rank = selected && this.rankOf(selected.rank);
    if (rank && selected.at) {
      const start = Math.round(toAxis(rank.clock, selected.at[2]));
      this.setSpan({ start, end: start + Math.max(selected.at[3], 1), rows: null });
      this.describeSpan();
    }
  }

  async describeSpan() {
    const { span } = this;
    if (!span) {
      return;
    }
    this.remember();
    const actions = [
      button("zoom to this span", "F", () => this.fitSelected()),
      button("critical path of this span", "show what determines the length of this span", () => this.pathOfSpan()),
    ];
    try {
      const ranks = this.ranks.filter((rank) => !span.rows || span.rows.has(rank.number));
      const answers = await Promise.all(ranks.map((rank) => this.inSpan(rank, span)));
      if (this.span === span) {
        const box = new AreaBox(this.run, areasOf(this.rows, ranks, span), (rank, event) => this.point(rank, event));
        this.panel.span(span, ranks.map((rank, at) => [rank, answers[at]]), actions, box.root);
        box.load();
      }
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  /**
   * @param {Rank} rank
   * @param {Span} span
   * @returns {Promise<SpanAnswer>}
   */
  inSpan(rank, span) {
    const [start, end] = timesIn(rank, span);
    const rows = rowsIn(this.rows, rank, span).join(",");
    return rows ? ask("span", { run: this.run, rank: rank.number, start, end, rows }) : Promise.resolve({ rows: [] });
  }

  /** Put the selection and the active overlays into the address. */
  remember() {
    const { base, selected, span } = this;
    const params = address.current();
    address.put(params, "event", selected && `${selected.rank}:${selected.event}`);
    address.put(params, "at", span && !span.rows ? `${base + BigInt(span.start)}-${base + BigInt(span.end)}` : "");
    address.put(params, "rows", String(this.rows));
    address.put(params, "show", OVERLAYS.filter((name) => this.shown.has(name)).join(","));
    if (selected || span) {
      params.delete("find");
    }
    address.remember(params);
  }

  async goToRequested() {
    const { at = "", event, find } = this.attributes;
    if (event) {
      return;
    }
    const [start, end] = this.requestedTimes(at);
    if (start < end) {
      this.setSpan({ start, end, rows: null });
      this.pathSpan = this.shown.has("path") ? { start, end, rows: null } : null;
      this.showTimes(start, end);
      await this.describeSpan();
    } else if (start !== undefined) {
      this.showTimes(start - MOMENT_NS, start + MOMENT_NS);
    } else if (find) {
      this.toolbar.searchBox.value = find;
      const longest = await this.search.find(find);
      if (longest) {
        await this.goTo(longest.rank, longest.event);
      }
    }
  }

  /**
   * Read `at` in the address: a time or `START-END` on the axis, or, after `RANK:`, on the clock of that rank.
   * @param {string} at
   */
  requestedTimes(at) {
    const [, rank, first, last] = at.match(/^(?:(\d{1,9}):)?(\d{1,19})(?:-(\d{1,19}))?$/) ?? [];
    const of = this.rankOf(Number(rank));
    this.view.scroll = this.view.items.find((item) => item.rank === of)?.top ?? this.view.scroll;
    const times = [first, last].filter((text) => text !== undefined).map(BigInt);
    return times.map((time) =>
      of ? Math.round(toAxis(of.clock, Number(time - of.origin))) : Number(time - this.base),
    );
  }

  // Pointer

  /** @param {Pointer | null} pointer */
  hover(pointer) {
    this.pointing.show(pointer);
    if (this.input.drag) {
      return; // a press on the button of a row, which stays
    }
    const item = pointer && pointer.x < SIZES.labels ? this.view.itemAt(pointer.y) : undefined;
    const hovered = item?.kind === "row" ? item.row : null;
    if (hovered !== this.hovered) {
      this.hovered = hovered;
      this.draw();
    }
  }

  /**
   * @param {RowItem} item
   * @param {Pointer} pointer
   */
  dragRow(item, pointer) {
    this.rowDrag ??= new RowDrag(this.view, this.rows, item);
    this.rowDrag.to(pointer);
    this.draw();
  }

  dropRow() {
    this.rowDrag?.drop();
    this.rowDrag = null;
    this.rowsChanged();
  }

  /**
   * @param {"pin" | "hide"} name
   * @param {RowItem} item
   */
  pressRowButton(name, { rank, row }) {
    this.rows[name === "pin" ? "togglePinned" : "toggleHidden"](rank, row);
    this.hovered = null;
    this.rowsChanged();
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  click(x, y) {
    const item = this.view.itemAt(y);
    const finding = this.pointing.findingAt(item, x, y);
    const segment = this.pointing.segmentAt(item, x);
    const slice = this.pointing.sliceAt(item, x, y);
    if (item && finding) {
      this.goToFinding(item.rank, finding);
    } else if (item && segment && segment.event >= 0) {
      this.select(item.rank.number, segment.event);
    } else if (item?.kind === "rank") {
      item.rank.isFolded = !item.rank.isFolded;
      this.arranged();
    } else if (item?.kind === "row" && x < SIZES.labels) {
      const name = item.row === this.hovered ? buttonAt(this.view, item, x, y) : null;
      if (name) {
        this.pressRowButton(name, item);
        return;
      }
      item.row.isFolded = item.row.lanes > 1 && !item.row.isFolded;
      this.arranged();
    } else if (item && slice) {
      this.select(item.rank.number, slice.event);
    } else {
      this.select(null);
    }
  }

  openPerfetto() {
    const ranks = this.ranks.map((rank) => rank.number);
    if (ranks.length) {
      const say = (/** @type {string} */ text) => this.say(text);
      openPerfetto({ run: this.run, ranks, isHere: Boolean(this.attributes.perfetto), say });
    }
  }
}
