// The timeline: a canvas that requests only as much data as its pixels can show. This file stores the state and
// connects the parts:
//
//   opening/     loads ranks, compares clocks, shows the requested view
//   view         visible time range and layout            input, presses   mouse and keys
//   pointing     item under the pointer                   overlays         critical path, findings and counters
//   selection/   selected event or span                   navigation/      moves the view; search; next and previous event
//   data/        requests and their answers               drawing/         the canvas and its colours
//   window/      elements around the canvas               later            parts that load after the first drawing

import { numbersOf } from "../shell/address.js";
import { topOf } from "./address/texts.js";
import { ViewAddress } from "./address/view_address.js";
import { offsetAt, toAxis } from "./data/clocks.js";
import { Loader } from "./data/loader.js";
import { openPerfetto } from "./data/perfetto.js";
import { Painter } from "./drawing/painter.js";
import { button, element } from "./elements.js";
import { Input } from "./input.js";
import { Movement } from "./navigation/movement.js";
import { Search } from "./navigation/search.js";
import { Stepping } from "./navigation/stepping.js";
import { Opening } from "./opening/opening.js";
import { Overlays } from "./overlays.js";
import { Pointing } from "./pointing.js";
import { Presses } from "./presses.js";
import { RowState } from "./rows/row_state.js";
import { Selection } from "./selection/selection.js";
import { SIZES, View, labelsWidth } from "./view.js";
import { Flags } from "./window/flags.js";
import { Panel } from "./window/panel.js";
import { Sash } from "./window/sash.js";
import { Toolbar } from "./window/toolbar.js";

/** @typedef {import("../types.js").Link} Link */
/** @typedef {import("../types.js").Rank} Rank */
/** @typedef {import("../types.js").Row} Row */
/** @typedef {import("../types.js").Selected} Selected */
/** @typedef {import("../types.js").Span} Span */
/** @typedef {import("./later.js").Later} Later */

const LEAST_WIDTH = 320;

export class Timeline {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.attributes = { ...root.dataset };
    this.run = this.attributes.run ?? "";
    this.among = this.attributes.ranks ?? "";
    this.steps = this.attributes.steps ?? "";
    this.devices = this.attributes.devices ? new Set(numbersOf(this.attributes.devices)) : null;
    /** The SQL query in the address. */
    this.query = this.attributes.sql ?? "";
    /** @type {Rank[]} */
    this.ranks = [];
    /** The origin of the first rank; all times of the view are counted from it. */
    this.base = 0n;
    this.address = new ViewAddress(this);
    this.shown = this.address.shown;
    this.top = topOf(this.attributes.top ?? ""); // where to scroll to; null after the visitor has scrolled
    this.pattern = "";
    this.rows = new RowState(this.attributes.rows);
    /** @type {import("./rows/row_marks.js").RowDrag | null} */
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
    /** @type {Promise<Later> | null} */
    this.later = null;
    /** @type {import("./window/minimap.js").Minimap | null} */
    this.minimap = null;
    /** @type {import("./rows/rows_list.js").RowsList | null} */
    this.rowsList = null;
    /** @type {() => void} */
    this.pictured = () => {};
    /** Resolves once the first events are drawn. @type {Promise<void>} */
    this.picture = new Promise((keep) => {
      this.pictured = keep;
    });

    /** @param {string} text */
    const say = (text) => this.say(text);
    /**
     * @param {number} rank
     * @param {number} event
     */
    const goTo = (rank, event) => this.selection.goTo(rank, event);
    this.view = new View();
    this.frame = element("div", "holotrace-timeline-view");
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("aria-label", "timeline: zoom with W and S, pan with A and D, select with J, K, comma and full stop");
    this.map = element("div", "holotrace-timeline-map");
    this.opening = new Opening(this);
    this.selection = new Selection(this);
    this.movement = new Movement(this);
    this.overlays = new Overlays(this);
    this.presses = new Presses(this);
    this.pointing = new Pointing(this.view);
    this.flags = new Flags(this);
    this.stepping = new Stepping(this, { goTo: (rank, place) => this.movement.stepTo(rank, place), say });
    this.search = new Search(this, { changed: () => this.changed(), goTo, say });
    this.panel = new Panel(this, {
      changed: () => {
        this.toolbar.show(this);
        this.address.later();
      },
      close: () => this.selection.unselect(),
      goTo,
      goToFinding: (rank, finding) => this.movement.goToFinding(rank, finding),
      step: (of, by) => this.stepping.step(of, by),
    });
    this.loader = new Loader(this, {
      drawn: () => this.draw(),
      answered: () => window.requestAnimationFrame(this.pictured),
      arranged: () => this.arranged(),
      say,
      pathKnown: () => this.toolbar.show(this),
      findingsKnown: () => this.overlays.findingsKnown(),
    });
    this.painter = new Painter(this.canvas, this);
    this.input = new Input(this.canvas, this.view, this.presses.actions());
    this.toolbar = this.createToolbar();
    this.rowsButton = button("rows", "filter, pin, hide and move rows", () => {
      this.withLater(({ rowsList }) => rowsList.open(rowsList.root.hidden));
    });
    this.rowsButton.setAttribute("aria-expanded", "false");
    const openSql = () => this.withLater(({ sql }) => sql.open());
    this.toolbar.add(this.rowsButton, button("SQL", "query the trace with SQL", openSql));
    this.frame.append(this.canvas, this.pointing.tip);
    const sash = new Sash(root, this.panel.root.id);
    root.append(this.toolbar.bar, this.toolbar.legend, this.map, this.frame, sash.bar, this.panel.root);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.frame);
    this.themes = new MutationObserver(() => {
      this.draw();
      this.minimap?.draw();
    });
    this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mantine-color-scheme"] });
    this.toolbar.show(this);
    this.resize();
    this.picture.then(() => this.withLater(() => {}));
    this.opening.open().catch((error) => this.sayError(error));
  }

  createToolbar() {
    const { movement, overlays, search } = this;
    return new Toolbar(Boolean(this.attributes.perfetto), {
      find: (text) => search.find(text),
      step: (by) => search.step(by),
      leave: () => this.canvas.focus(),
      toggle: (name) => overlays.toggle(name),
      fitAll: () => movement.fitAll(),
      goToPath: (rank, start, end) => movement.showTimes(toAxis(rank.clock, start), toAxis(rank.clock, end), 0.02),
      openPerfetto: () => this.openPerfetto(),
    });
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

  /** @param {unknown} error */
  sayError(error) {
    this.say(/** @type {Error} */ (error).message);
  }

  /**
   * Call `use` with the parts of the page that are loaded only after the first drawing; load them now if necessary.
   * @param {(later: Later) => unknown} use
   */
  async withLater(use) {
    this.later ??= this.loadLater();
    try {
      await use(await this.later);
    } catch (error) {
      this.sayError(error);
    }
  }

  async loadLater() {
    try {
      const { Later } = await import("./later.js");
      const later = new Later(this);
      this.minimap = later.minimap;
      this.rowsList = later.rowsList;
      this.minimap.draw();
      this.rowsList.show();
      return later;
    } catch (error) {
      this.later = null; // the next use tries again
      throw error;
    }
  }

  /** Load the map of busy times, after the first events are drawn. */
  async loadMap() {
    await this.picture;
    await this.withLater(({ minimap }) => minimap.load());
  }

  /** @param {number} number */
  rankOf(number) {
    return this.ranks.find((rank) => rank.number === number);
  }

  /** Lay out the rows again. */
  arrange() {
    this.view.arrange(this.ranks, this.shown, this.rows);
    this.rowsList?.show();
  }

  /**
   * Lay out the rows again, but keep the item `fixed` at its place on the screen. By default, `fixed` is the row of the
   * selected event. If no selected event is in view, the item at the upper edge keeps its place instead.
   * @param {import("../types.js").Item} [fixed]
   */
  arranged(fixed = this.selectedItem()) {
    const { view } = this;
    const anchor = view.anchor(fixed);
    this.arrange();
    if (!view.restore(this.top)) {
      view.restore(anchor);
    }
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
      this.minimap?.follow();
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
    this.minimap?.draw();
    if (view.isOpen) {
      this.painter.paint(); // now, because fitting has cleared the canvas
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
