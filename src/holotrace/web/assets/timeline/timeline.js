// The timeline: a canvas that requests only the data that its pixels can show. This file connects these parts:
//
//   view      visible time range and layout        input      mouse and keys
//   pointing  item under the pointer               search     matches, one after the other
//   data/     requests and their answers, and the clocks of ranks
//   drawing/  the canvas and its colours
//   window/   what surrounds the canvas: toolbar and panel

import { numbersOf } from "../shell/address.js";
import { topOf } from "./address/texts.js";
import { ViewAddress } from "./address/view_address.js";
import { compared, fromAxis, offsetAt, recorded, toAxis } from "./data/clocks.js";
import { Loader } from "./data/loader.js";
import { openPerfetto } from "./data/perfetto.js";
import { ask } from "./data/server.js";
import { Painter } from "./drawing/painter.js";
import { Flags } from "./window/flags.js";
import { Minimap } from "./window/minimap.js";
import { Panel } from "./window/panel.js";
import { Sash } from "./window/sash.js";
import { Toolbar } from "./window/toolbar.js";
import { AreaBox, areasOf, rowsIn, timesIn } from "./area/area.js";
import { inOrder } from "./rows/rank_order.js";
import { RowDrag, buttonAt } from "./rows/row_marks.js";
import { RowState } from "./rows/row_state.js";
import { RowsList } from "./rows/rows_list.js";
import { SqlBox } from "./sql/sql_box.js";
import { button, element } from "./elements.js";
import { Input } from "./input.js";
import { Pointing } from "./pointing.js";
import { Search } from "./search.js";
import { Stepping } from "./stepping.js";
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

const MOMENT_NS = 500_000;
const LEAST_MARGIN_NS = 1_000;
const LEAST_WIDTH = 320;
const FLAG_PX = 6;

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
    this.devices = this.attributes.devices ? new Set(numbersOf(this.attributes.devices)) : null;
    /** @type {Rank[]} */
    this.ranks = [];
    /** The origin of the first rank, from which all times of the view count. */
    this.base = 0n;
    this.address = new ViewAddress(this);
    this.shown = this.address.shown;
    this.top = topOf(this.attributes.top ?? ""); // where to scroll to, until it is reached or somebody scrolls
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
    this.flags = new Flags(this, {
      changed: () => this.flagsChanged(),
      goTo: ({ time }) => this.centre(time, time),
      leave: () => this.canvas.focus(),
      say,
    });
    this.stepping = new Stepping(this, { goTo: (rank, place) => this.stepTo(rank, place), say });
    /** @type {import("./window/panel.js").Actions["step"]} */
    const step = (of, by) => this.stepping.step(of, by);
    this.minimap = new Minimap(this, { move: (start, end) => this.moveTo(start, end), say });
    this.search = new Search(this, { changed: () => this.changed(), goTo, say });
    this.panel = new Panel(this, {
      changed: () => this.panelChanged(),
      close: () => this.unselect(),
      goTo,
      goToFinding: (rank, finding) => this.goToFinding(rank, finding),
      step,
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
    this.sqlBox = new SqlBox(
      { run: this.run, ranks: this.among, query: this.attributes.sql ?? "" },
      { show: (place) => this.showPlace(place), asked: () => this.address.write() },
    );
    this.toolbar.add(this.rowsList.toggle, button("SQL", "ask a SQL query about the trace", () => this.openSql()));
    const sash = new Sash(this.root, this.panel.root.id);
    this.root.append(
      this.toolbar.bar,
      this.toolbar.legend,
      this.minimap.root,
      this.frame,
      sash.bar,
      this.panel.root,
    );
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.frame);
    this.themes = new MutationObserver(() => {
      this.draw();
      this.minimap.draw();
    });
    this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mantine-color-scheme"] });
    this.toolbar.show(this);
    this.resize();
    this.open().catch((error) => this.say(error.message));
  }

  /** @returns {import("./input.js").Actions} */
  actions() {
    return {
      moved: () => {
        this.top = null;
        this.changed();
      },
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
      flag: (x) => this.flagAt(x),
      step: (of, by) => this.stepping.step(of, by),
      unselect: () => this.unselect(),
    };
  }

  close() {
    this.isClosed = true;
    this.sizes.disconnect();
    this.themes.disconnect();
    this.loader.close();
    this.address.close();
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
    const { event, rank: wanted } = this.address;
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
        await (this.address.window ? this.select(number, event) : this.goTo(number, event));
      }
    }
    this.sayCount(known.count);
    await this.compareClocks();
    this.address.isFollowed = true;
    await this.goToRequested();
    this.minimap.load();
    this.loadFindings(); // after the ranks, because comparing ranks takes longer than drawing them
    if (known.count > 2) {
      await this.showFirst();
      this.sayCount(known.count);
    }
    this.minimap.load(); // also the ranks that `showFirst` has added
  }

  /** @param {number} count */
  sayCount(count) {
    const left = count - this.ranks.length;
    if (!this.ranks.length) {
      this.say("this run has no such ranks; choose others above");
      return;
    }
    this.say(left > 0 ? `${this.ranks.length} of ${count} ranks shown; choose others above` : "");
  }

  /**
   * Return a rank, which is loaded if it is not shown yet.
   * @param {number} number
   */
  async loaded(number) {
    if (!this.rankOf(number)) {
      this.addRank(number, await ask("rows", { run: this.run, rank: number }));
      await this.compareClocks();
    }
    return /** @type {Rank} */ (this.rankOf(number));
  }

  /** Show the late rank and a typical one first, once the server has compared all ranks. */
  async showFirst() {
    try {
      /** @type {{ rank: number, reason: string }[]} */
      const order = await ask("order", { run: this.run, ranks: this.among });
      for (const { rank, reason } of this.isClosed ? [] : order) {
        Object.assign(await this.loaded(rank), { reason });
      }
      if (order.length && !this.isClosed) {
        const isAtTop = this.view.scroll === 0 && !this.top && !this.selected;
        this.ranks = inOrder(this.ranks, order.map(({ rank }) => rank));
        this.arranged();
        if (isAtTop) {
          this.view.scroll = 0;
          this.changed();
        }
        this.loadFindings();
      }
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  /**
   * @param {number} number
   * @param {RankAnswer} answer
   */
  addRank(number, { origin, length, steps, rows }) {
    if (!this.ranks.length) {
      this.base = BigInt(origin);
      this.flags.open();
    }
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
    if (this.attributes.event && this.selected?.at && !this.address.window) {
      this.show(this.selected.rank, this.selected.at);
    }
    this.arranged();
  }

  /**
   * Return the time range that the address names, that of the selected steps, or the whole.
   * @param {Rank} rank
   */
  firstWindow({ clock, steps }) {
    const requested = this.address.window;
    if (requested) {
      return [requested.start, requested.end];
    }
    const numbers = this.steps ? new Set(numbersOf(this.steps)) : new Set();
    const chosen = steps.filter(([, , number]) => numbers.has(number));
    const { whole } = this.view;
    const ends = chosen.length ? [chosen[0][0], chosen[chosen.length - 1][1]] : null;
    return ends ? ends.map((time) => toAxis(clock, time)) : [whole.start, whole.end];
  }

  /**
   * Arrange the rows anew; `fixed` stays where it is, by default the selected event or the item at the upper edge.
   * @param {import("../types.js").Item} [fixed]
   */
  arranged(fixed = this.selectedItem()) {
    const { view } = this;
    const anchor = view.anchor(fixed);
    view.arrange(this.ranks, this.shown, this.rows);
    if (!view.restore(this.top)) {
      view.restore(anchor);
    }
    this.rowsList.show();
    this.changed();
  }

  rowsChanged() {
    this.address.write();
    this.arranged();
  }

  /** The row of the selected event, if the event is in view. */
  selectedItem() {
    const { selected, view } = this;
    const [row, depth] = selected?.at ?? [];
    const isShown = selected && row !== undefined && depth !== undefined && view.shows(selected.rank, row, depth);
    return isShown ? view.rowItem(selected.rank, row) : undefined;
  }

  changed() {
    if (this.view.isOpen && !this.isClosed) {
      this.view.keepScroll();
      this.ranks.forEach((rank) => {
        rank.offset = offsetAt(rank.clock, (this.view.start + this.view.end) / 2);
      });
      this.draw();
      this.minimap.follow();
      this.loader.later();
      this.address.later();
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
    this.minimap.draw();
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
    if (name === "flags") {
      this.listFlags(this.panel.shown !== "flags");
      return;
    }
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
    this.address.write();
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
    this.address.write();
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
   * Select an event and scroll to its row, while the panel keeps what it lists; return its place.
   * @param {number} rank
   * @param {number} event
   */
  async mark(rank, event) {
    /** @type {Selected} */
    const selected = { rank, event };
    this.selected = selected;
    this.links = [];
    this.address.write();
    try {
      /** @type {EventAnswer} */
      const { at } = await ask("event", { run: this.run, rank, event });
      if (this.selected !== selected) {
        return null;
      }
      selected.at = at;
      this.reveal(rank, at);
      this.changed();
      return at;
    } catch (error) {
      this.say(messageOf(error));
      return null;
    }
  }

  /**
   * Select an event and zoom to it, while the panel keeps what it lists.
   * @param {number} rank
   * @param {number} event
   */
  async point(rank, event) {
    const at = await this.mark(rank, event);
    if (at) {
      this.show(rank, at);
    }
  }

  /**
   * Zoom and scroll to an event.
   * @param {number} number
   * @param {Place} place
   */
  show(number, place) {
    const rank = this.rankOf(number);
    if (rank) {
      const [, , start, length] = place;
      this.reveal(number, place);
      this.showTimes(toAxis(rank.clock, start), toAxis(rank.clock, start + length));
    }
  }

  /**
   * Scroll to the row of an event, and show the row if it is hidden or folded.
   * @param {number} number
   * @param {Place} place
   */
  reveal(number, [row, depth]) {
    const rank = this.rankOf(number);
    const known = rank?.rows.find(({ at }) => at === row);
    if (rank && known) {
      rank.isFolded = false;
      this.top = null;
      this.rows.reveal(rank, known);
      this.view.arrange(this.ranks, this.shown, this.rows);
      this.rowsList.show();
      this.view.reveal(number, row, depth);
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
   * @param {{ start: number, end: number, event?: number | null }} finding
   */
  goToFinding(rank, { start, end, event }) {
    this.focus = { rank: rank.number, start: toAxis(rank.clock, start), end: toAxis(rank.clock, end) };
    const item = this.view.items.find((candidate) => candidate.rank === rank && !candidate.isPinned);
    if (item && !this.view.isVisible(item)) {
      this.view.scroll = item.top;
    }
    const margin = start === end ? MOMENT_NS : 0;
    this.showTimes(this.focus.start - margin, this.focus.end + margin);
    if (typeof event === "number") {
      this.mark(rank.number, event);
    }
  }

  /**
   * Select a neighbour of the selected event and bring it into view; zoom only if it is longer than the view.
   * @param {number} number
   * @param {Place} place
   */
  stepTo(number, place) {
    const [row, depth, start, length, event] = place;
    const rank = this.rankOf(number);
    const folded = rank?.rows.find(({ at }) => at === row);
    if (rank && folded) {
      rank.isFolded = false;
      folded.isFolded = folded.isFolded && depth === 0;
      this.rows.reveal(rank, folded);
      this.top = null;
      this.arranged();
      this.view.reveal(number, row, depth);
      this.centre(toAxis(rank.clock, start), toAxis(rank.clock, start + length));
      this.select(number, event);
    }
  }

  /**
   * Move times into view if they are not there, without zooming unless they are longer than the view.
   * @param {number} start
   * @param {number} end
   */
  centre(start, end) {
    const { view } = this;
    if (end - start > view.length) {
      this.showTimes(start, end);
    } else if (start < view.start || end > view.end) {
      this.moveTo((start + end - view.length) / 2, (start + end + view.length) / 2);
    } else {
      this.changed();
    }
  }

  /**
   * @param {number} start
   * @param {number} end
   */
  moveTo(start, end) {
    this.view.move(start, end);
    this.changed();
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
    this.address.write();
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

  async goToRequested() {
    const { event, find, panel } = this.attributes;
    if (panel === "flags") {
      this.listFlags(true);
    }
    if (event) {
      return;
    }
    const [start, end] = this.address.times;
    const rank = this.rankOf(this.address.rank ?? -1);
    if (start !== undefined && rank && !this.top) {
      this.view.scroll = this.view.items.find((item) => item.rank === rank)?.top ?? this.view.scroll;
    }
    if (start < end) {
      await this.goToSpan({ start, end, rows: null });
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

  /** @param {Span} span */
  async goToSpan(span) {
    this.setSpan(span);
    this.pathSpan = this.shown.has("path") ? { ...span } : null;
    if (!this.address.window) {
      this.showTimes(span.start, span.end);
    }
    await this.describeSpan();
  }

  // Flags

  flagsChanged() {
    this.draw();
    this.minimap.draw();
    this.address.later();
  }

  /** @param {boolean} isWanted */
  listFlags(isWanted) {
    if (isWanted) {
      this.panel.flags();
    } else {
      this.unselect();
    }
  }

  panelChanged() {
    this.toolbar.show(this);
    this.address.later();
  }

  /**
   * Set a flag at a pixel, else at the selected event, else in the middle of the view.
   * @param {number | null} x
   */
  flagAt(x) {
    const { selected, view } = this;
    const rank = selected && this.rankOf(selected.rank);
    if (!view.isOpen) {
      return;
    }
    if (x !== null && x > SIZES.labels) {
      this.flag(view.timeAt(x));
    } else {
      this.flag(rank && selected.at ? toAxis(rank.clock, selected.at[2]) : (view.start + view.end) / 2);
    }
  }

  /** @param {number} time */
  flag(time) {
    const flag = this.flags.add(time);
    if (flag) {
      this.listFlags(true);
      this.flags.edit(flag, this.panel.root);
    }
  }

  /** @param {number} x */
  clickRuler(x) {
    if (x <= SIZES.labels) {
      return;
    }
    const time = this.view.timeAt(x);
    const known = this.flags.near(time, (FLAG_PX * this.view.length) / this.view.pixels);
    if (known) {
      this.listFlags(true);
      this.flags.edit(known, this.panel.root);
    } else {
      this.flag(time);
    }
  }

  // SQL

  openSql() {
    this.select(null);
    this.panel.put(this.sqlBox.root);
    this.sqlBox.query.focus();
  }

  /** @param {import("../types.js").SqlPlace} place */
  async showPlace(place) {
    const [number, first] = place;
    try {
      const rank = await this.loaded(number);
      if (typeof first === "number") {
        await this.point(number, first);
      } else {
        const [start, end] = [first, place[2] ?? first].map((time) => Number(BigInt(time) - rank.origin));
        this.goToFinding(rank, { start, end });
      }
    } catch (error) {
      this.say(messageOf(error));
    }
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
    this.top = null;
    const item = this.view.itemAt(y);
    const finding = this.pointing.findingAt(item, x, y);
    const segment = this.pointing.segmentAt(item, x);
    const slice = this.pointing.sliceAt(item, x, y);
    if (y < SIZES.ruler) {
      this.clickRuler(x);
    } else if (item && finding) {
      this.goToFinding(item.rank, finding);
    } else if (item && segment && segment.event >= 0) {
      this.select(item.rank.number, segment.event);
    } else if (item?.kind === "rank") {
      item.rank.isFolded = !item.rank.isFolded;
      this.arranged(item);
    } else if (item?.kind === "row" && x < SIZES.labels) {
      const name = item.row === this.hovered ? buttonAt(this.view, item, x, y) : null;
      if (name) {
        this.pressRowButton(name, item);
        return;
      }
      item.row.isFolded = item.row.lanes > 1 && !item.row.isFolded;
      this.arranged(item);
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
