"use strict";

// The timeline: a canvas that asks the server for what its pixels can show. This file puts the parts together and holds
// their state; the others have one thought each:
//
//   view     which time is in view, and where everything stands     loader   asks for what is in view
//   painter  draws it                                               server   requests, and answers as they are kept
//   input    mouse and keys                                         pointing what lies under the pointer
//   toolbar  search, buttons, legend                                panel    the event, span or findings below
//   search   from one event found to the next                       perfetto hands the trace on
//   colours, words  how things are shown
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const ASKED = ["run", "ranks", "steps", "devices", "find", "event", "at", "show"];
  const OVERLAYS = ["path", "findings"];
  const MOMENT_NS = 500_000;
  const LEAST_MARGIN_NS = 1_000;

  class Timeline {
    constructor(root) {
      const { numbers } = timeline.words;
      this.root = root;
      this.asked = { ...root.dataset };
      this.view = new timeline.View();
      this.run = this.asked.run;
      this.among = this.asked.ranks || "";
      this.steps = this.asked.steps || "";
      this.devices = this.asked.devices ? new Set(numbers(this.asked.devices)) : null;
      this.ranks = [];
      this.shown = new Set((this.asked.show || "").split(",").filter((each) => OVERLAYS.includes(each)));
      this.pattern = "";
      this.selected = null;
      this.links = [];
      this.span = null;
      this.pathSpan = null;
      this.focus = null;
      this.build();
      this.open().catch((error) => this.say(error.message));
    }

    build() {
      const { element } = timeline.words;
      const goTo = (rank, event) => this.goTo(rank, event);
      const say = (text) => this.say(text);
      this.frame = element("div", "holotrace-timeline-view");
      this.canvas = element("canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("aria-label", "timeline: zoom with W and S, go with A and D");
      this.pointing = new timeline.Pointing(this.view);
      this.frame.append(this.canvas, this.pointing.tip);
      this.search = new timeline.Search(this, { changed: () => this.changed(), goTo, say });
      this.panel = new timeline.Panel(this, {
        resized: () => this.resize(), goTo, goToFinding: (rank, finding) => this.goToFinding(rank, finding),
      });
      this.loader = new timeline.Loader(this, {
        drawn: () => this.draw(),
        arranged: () => this.arranged(),
        say,
        pathKnown: () => this.toolbar.show(this),
        findingsKnown: () => this.findingsKnown(),
      });
      this.painter = new timeline.Painter(this.canvas, this);
      this.input = new timeline.Input(this.canvas, this.view, this.actions());
      this.toolbar = new timeline.Toolbar(this.asked.perfetto, {
        find: (text) => this.search.find(text),
        step: (by) => this.search.step(by),
        leave: () => this.canvas.focus(),
        toggle: (name) => this.toggle(name),
        fitAll: () => this.fitAll(),
        goToPath: (rank, start, end) => this.showTimes(start + rank.offset, end + rank.offset, 0.02),
        openPerfetto: () => this.openPerfetto(),
      });
      this.root.append(this.toolbar.bar, this.toolbar.legend, this.frame, this.panel.root);
      this.sizes = new ResizeObserver(() => this.resize());
      this.sizes.observe(this.root);
      this.themes = new MutationObserver(() => this.draw());
      this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mantine-color-scheme"] });
      this.toolbar.show(this);
      this.resize();
    }

    actions() {
      return {
        moved: () => this.changed(),
        hover: (pointer) => this.pointing.show(pointer),
        click: (x, y) => this.click(x, y),
        span: (span) => this.setSpan(span),
        spanDone: () => this.describeSpan(),
        fitSelected: () => this.fitSelected(),
        fitAll: () => this.fitAll(),
        markSelected: () => this.markSelected(),
        toSearch: () => this.toolbar.searchBox.focus(),
        unselect: () => (this.selected || this.span || this.focus || !this.panel.root.hidden ? this.unselect() : false),
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

    say(text) {
      this.toolbar.status.textContent = text;
    }

    // Read the ranks one after the other; each is drawn as soon as it is there.
    async open() {
      this.say("opening");
      const known = await timeline.server.ask("ranks", { run: this.run, ranks: this.among });
      const [wanted] = this.asked.event ? timeline.words.numbers(this.asked.event.split(":")[0]) : [];
      const ranks = wanted === undefined || known.ranks.includes(wanted) ? known.ranks : [wanted, ...known.ranks];
      for (const number of ranks) {
        const waiting = (text) => this.say(`rank ${number}: ${text}`);
        const found = await timeline.server.ask("rows", { run: this.run, rank: number }, { waiting });
        if (this.isClosed) {
          return;
        }
        this.addRank(number, found);
        if (number === wanted) {
          await this.goTo(...this.asked.event.split(":").map(Number));
        }
      }
      const left = known.count - known.ranks.length;
      this.say(left > 0 ? `${known.ranks.length} of ${known.count} ranks; choose others above` : "");
      await this.goToAsked();
      this.loadFindings(); // after all ranks: comparing them takes longer than drawing them
    }

    addRank(number, found) {
      this.base = this.base ?? BigInt(found.origin);
      const rows = found.rows.map((row, at) => ({ ...row, at }));
      const isShown = ({ device }) => !this.devices || device === null || this.devices.has(device);
      const offset = Number(BigInt(found.origin) - this.base);
      const rank = { ...found, number, offset, rows: rows.filter(isShown), lanes: new Map(), counters: [], path: null };
      this.ranks.push(rank);
      const { view } = this;
      view.whole = {
        start: Math.min(...this.ranks.map((each) => each.offset)),
        end: Math.max(...this.ranks.map((each) => each.offset + Math.max(each.length, 1))),
      };
      if (!view.wasMoved) {
        [view.start, view.end] = this.firstWindow(rank);
      }
      this.arranged();
    }

    // The steps that are chosen, or everything.
    firstWindow({ steps, offset }) {
      const numbers = this.steps ? new Set(timeline.words.numbers(this.steps)) : new Set();
      const chosen = steps.filter(([, , number]) => numbers.has(number));
      const { whole } = this.view;
      return chosen.length ? [offset + chosen[0][0], offset + chosen[chosen.length - 1][1]] : [whole.start, whole.end];
    }

    arranged() {
      this.view.arrange(this.ranks, this.shown);
      this.changed();
    }

    changed() {
      if (this.view.isOpen && !this.isClosed) {
        this.view.keepScroll();
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
          this.root.dataset.drawn = String(this.ranks.filter((rank) => rank.lanes.size).length); // how many ranks are there
        }
      });
    }

    resize() {
      const top = this.frame.getBoundingClientRect().top + window.scrollY;
      const below = this.panel.root.hidden ? 60 : 300;
      this.view.width = Math.max(this.root.clientWidth - 2, 320);
      this.view.height = timeline.words.clamp(window.innerHeight - top - below, 320, 1200);
      if (this.painter.fit()) {
        this.changed();
      }
    }

    rankOf(number) {
      return this.ranks.find((rank) => rank.number === number);
    }

    // Overlays

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

    // What came later does not take the place of what was selected meanwhile.
    findingsKnown() {
      if (!this.selected && !this.span && this.shown.has("findings")) {
        this.panel.findings();
      }
      this.draw();
    }

    // What is selected

    async select(rank, event) {
      this.links = [];
      this.span = null;
      this.focus = null;
      this.selected = rank === null ? null : { rank, event };
      this.remember();
      if (!this.selected) {
        this.panel.hide();
        this.draw();
        return null;
      }
      const { selected } = this;
      const parameters = { run: this.run, rank, event };
      try {
        const found = await timeline.server.ask("event", parameters);
        if (this.selected !== selected) {
          return null;
        }
        selected.at = found.at;
        this.panel.event(rank, found);
        this.draw();
        this.follow(selected, parameters);
        return found;
      } catch (error) {
        this.say(error.message);
        return null;
      }
    }

    async follow(selected, parameters) {
      this.panel.searching();
      try {
        const links = await timeline.server.ask("links", parameters);
        if (this.selected === selected) {
          this.links = links;
          this.panel.links(selected.rank, links);
          this.draw();
        }
      } catch (error) {
        this.say(error.message);
      }
    }

    unselect() {
      this.select(null);
    }

    async goTo(rank, event) {
      const found = await this.select(rank, event);
      if (found) {
        this.show(rank, found.at);
      }
    }

    // Bring an event into view, with as much again on either side.
    show(number, [row, depth, start, length]) {
      const rank = this.rankOf(number);
      if (rank) {
        rank.isFolded = false;
        this.view.arrange(this.ranks, this.shown);
        this.view.reveal(number, row, depth);
        this.showTimes(start + rank.offset, start + rank.offset + length);
      }
    }

    // With a share of their length on either side.
    showTimes(start, end, share = 1.5) {
      const margin = Math.max(end - start, LEAST_MARGIN_NS) * share;
      this.view.move(start - margin, end + margin);
      this.changed();
    }

    goToFinding(rank, { start, end }) {
      this.focus = { rank: rank.number, start: start + rank.offset, end: end + rank.offset };
      const [item] = this.view.items.filter((each) => each.rank === rank);
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
      } else if (this.selected && this.selected.at) {
        this.show(this.selected.rank, this.selected.at);
      }
    }

    fitAll() {
      if (this.view.isOpen) {
        this.view.move(this.view.whole.start, this.view.whole.end);
        this.changed();
      }
    }

    // A span of time

    setSpan(span) {
      this.selected = null;
      this.links = [];
      this.focus = null;
      this.span = span;
      this.draw();
    }

    // The time of the selected event.
    markSelected() {
      const rank = this.selected && this.selected.at && this.rankOf(this.selected.rank);
      if (rank) {
        const start = this.selected.at[2] + rank.offset;
        this.setSpan({ start, end: start + Math.max(this.selected.at[3], 1), rows: null });
        this.describeSpan();
      }
    }

    async describeSpan() {
      const { span } = this;
      if (!span) {
        return;
      }
      this.remember();
      const { button } = timeline.words;
      const actions = [
        button("zoom to it", "F", () => this.fitSelected()),
        button("critical path of it", "what bounds this span of time", () => this.pathOfSpan()),
      ];
      try {
        const ranks = this.ranks.filter((rank) => !span.rows || span.rows.has(rank.number));
        const answers = await Promise.all(ranks.map(async (rank) => [rank, await this.inSpan(rank, span)]));
        if (this.span === span) {
          this.panel.span(span, answers, actions);
        }
      } catch (error) {
        this.say(error.message);
      }
    }

    inSpan(rank, { start, end, rows }) {
      const asked = rows ? [...rows.get(rank.number)] : rank.rows.map((row) => row.at);
      const from = Math.floor(start - rank.offset);
      const to = Math.max(Math.ceil(end - rank.offset), from + 1);
      return timeline.server.ask("span", { run: this.run, rank: rank.number, start: from, end: to, rows: asked.join(",") });
    }

    // The address keeps what is selected and which overlays are on.
    remember() {
      const parameters = new URLSearchParams(window.location.search);
      const put = (key, value) => (value ? parameters.set(key, value) : parameters.delete(key));
      put("event", this.selected ? `${this.selected.rank}:${this.selected.event}` : "");
      put("at", this.span && !this.span.rows ? `${this.base + BigInt(this.span.start)}-${this.base + BigInt(this.span.end)}` : "");
      put("show", OVERLAYS.filter((each) => this.shown.has(each)).join(","));
      if (this.selected || this.span) {
        parameters.delete("find");
      }
      window.history.replaceState(window.history.state, "", `?${parameters.toString().replaceAll("%2C", ",")}`);
    }

    async goToAsked() {
      const { at, event, find } = this.asked;
      if (event) {
        return;
      }
      const moments = /^\d{1,19}(-\d{1,19})?$/.test(at || "") ? at.split("-").map((each) => Number(BigInt(each) - this.base)) : [];
      if (moments.length === 2 && moments[0] < moments[1]) {
        this.setSpan({ start: moments[0], end: moments[1], rows: null });
        this.pathSpan = this.shown.has("path") ? { ...this.span } : null;
        this.showTimes(...moments);
        await this.describeSpan();
      } else if (moments.length) {
        this.showTimes(moments[0] - MOMENT_NS, moments[0] + MOMENT_NS);
      } else if (find) {
        this.toolbar.searchBox.value = find;
        const longest = await this.search.find(find);
        if (longest) {
          await this.goTo(longest.rank, longest.event);
        }
      }
    }

    // What is under the pointer

    click(x, y) {
      const item = this.view.itemAt(y);
      const finding = this.pointing.findingAt(item, x, y);
      const segment = this.pointing.segmentAt(item, x);
      if (finding) {
        this.goToFinding(item.rank, finding);
      } else if (segment && segment.event >= 0) {
        this.select(item.rank.number, segment.event);
      } else if (item && item.kind === "rank") {
        item.rank.isFolded = !item.rank.isFolded;
        this.arranged();
      } else if (item && item.kind === "row" && x < timeline.SIZES.labels) {
        item.row.isFolded = item.row.lanes > 1 && !item.row.isFolded;
        this.arranged();
      } else {
        const slice = this.pointing.sliceAt(item, x, y);
        this.select(slice ? item.rank.number : null, slice && slice.event);
      }
    }

    openPerfetto() {
      const rank = this.selected ? this.selected.rank : this.ranks.length ? this.ranks[0].number : null;
      if (rank !== null) {
        timeline.openPerfetto({ run: this.run, rank, isHere: Boolean(this.asked.perfetto), say: (text) => this.say(text) });
      }
    }
  }

  timeline.current = null;

  // Dash puts the page in and takes it out again; follow.
  const attach = () => {
    const root = document.getElementById("timeline");
    const { current } = timeline;
    if (current && (current.root !== root || ASKED.some((key) => current.asked[key] !== root.dataset[key]))) {
      current.close();
      timeline.current = null;
    }
    if (root && !timeline.current) {
      timeline.current = new Timeline(root);
    }
  };

  const isTyping = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable]");

  window.addEventListener("keydown", (event) => {
    const { current } = timeline;
    if (!current || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
      return;
    }
    if (current.input.key(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }, true);
  window.addEventListener("keyup", (event) => timeline.current && timeline.current.input.release(event), true);
  window.addEventListener("blur", () => timeline.current && timeline.current.input.held.clear());
  window.addEventListener("resize", () => timeline.current && timeline.current.resize());
  new MutationObserver(attach).observe(document.documentElement, {
    childList: true,
    subtree: true,
    attributeFilter: ASKED.map((key) => `data-${key}`),
  });
  attach();
})();
