"use strict";

// The timeline: a canvas that asks the server for what its pixels can show. Names are only ever drawn as text.
(() => {
  const LABELS = 230;
  const RULER = 34;
  const LANE = 17;
  const HEAD = 22;
  const COUNTER = 34;
  const GAP = 5;
  const PERFETTO = "https://ui.perfetto.dev";
  const FIRST_COUNTERS = 3;
  const ASKED = ["run", "ranks", "steps", "devices", "find", "event"];
  const KEYS = new Set(["w", "a", "s", "d"]);

  // Hue, saturation and lightness of each class of events; names vary around them.
  const COLOURS = {
    computation: [208, 60, 46],
    communication: [24, 70, 48],
    memory: [165, 58, 34],
    other: [310, 25, 55],
    operator: [215, 32, 52],
    annotation: [265, 35, 56],
    call: [190, 38, 40],
    python: [95, 26, 42],
    wait: [348, 50, 54],
  };

  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    made.className = className || "";
    if (text !== undefined) {
      made.textContent = text;
    }
    return made;
  };

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  const duration = (ns) => {
    const size = Math.abs(ns);
    const [unit, name] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${Number((ns / unit).toPrecision(4))} ${name}`;
  };

  // A moment with as many digits as tell it from the next, `step` later.
  const moment = (ns, step) => {
    const size = Math.max(Math.abs(ns), step);
    const [unit, name] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${(ns / unit).toFixed(clamp(Math.ceil(Math.log10(unit / step)), 0, 9))} ${name}`;
  };

  const amount = (value, unit) => {
    if (unit === "fraction") {
      return `${(100 * value).toFixed(0)} %`;
    }
    const isBinary = unit === "bytes";
    const steps = isBinary ? ["B", "KiB", "MiB", "GiB", "TiB"] : unit ? ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"] : ["", "k", "M", "G", "T"];
    const base = isBinary ? 1024 : 1000;
    const power = clamp(Math.floor(Math.log(Math.max(Math.abs(value), 1)) / Math.log(base)), 0, steps.length - 1);
    return `${Number((value / base ** power).toPrecision(3))} ${steps[power]}`.trim();
  };

  const hashOf = (text) => {
    let hash = 0;
    for (let at = 0; at < text.length; at += 1) {
      hash = (hash * 31 + text.charCodeAt(at)) | 0;
    }
    return hash >>> 0;
  };

  const colourOf = ([text, kind]) => {
    const [hue, saturation, lightness] = COLOURS[kind] || COLOURS.other;
    const hash = hashOf(text);
    return `hsl(${hue + (hash % 25) - 12} ${saturation}% ${lightness + ((hash >> 5) % 9) - 4}%)`;
  };

  // Ask until the answer is ready; `waiting` is told what the server is doing.
  const ask = async (name, parameters, { signal, waiting } = {}) => {
    for (;;) {
      const response = await fetch(`timeline/${name}?${new URLSearchParams(parameters)}`, { signal });
      const answer = await response.json();
      if (response.status !== 202) {
        if (!response.ok) {
          throw new Error(answer.error || `the server answered ${response.status}`);
        }
        return answer;
      }
      if (waiting) {
        waiting(answer.waiting);
      }
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
  };

  // Columns of steps and lengths -> absolute starts.
  const startsOf = (steps, lengths) => {
    let at = 0;
    return steps.map((step, place) => {
      const start = at + step;
      at = start + lengths[place];
      return start;
    });
  };

  const decoded = (answer) => {
    const names = answer.names.map((name) => ({ text: name[0], colour: colourOf(name), isFound: name[2] }));
    const lanes = new Map();
    for (const [row, depth, alone, merged] of answer.lanes) {
      const slices = alone[0].length ? startsOf(alone[0], alone[1]).map((start, at) => ({
        start, length: alone[1][at], name: names[alone[2][at]], event: alone[3][at], count: 1, busy: alone[1][at],
      })) : [];
      const bins = startsOf(merged[0], merged[1]).map((start, at) => ({
        start, length: merged[1][at], busy: merged[2][at], count: merged[3][at], name: names[merged[4][at]], event: merged[5][at],
      }));
      lanes.set(`${row}/${depth}`, { row, depth, slices: slices.concat(bins) });
    }
    return lanes;
  };

  class Timeline {
    constructor(root) {
      this.root = root;
      this.asked = { ...root.dataset };
      this.ranks = [];
      this.view = null;
      this.scroll = 0;
      this.held = new Set();
      this.pointer = null;
      this.selected = null;
      this.links = [];
      this.found = [];
      this.foundAt = -1;
      this.pattern = "";
      this.allCounters = false;
      this.build();
      this.open().catch((error) => this.say(error.message));
    }

    build() {
      const bar = element("div", "hta-timeline-bar");
      this.searchBox = element("input");
      this.searchBox.type = "search";
      this.searchBox.placeholder = "search events (/)";
      this.searchBox.setAttribute("aria-label", "search events");
      this.status = element("span", "hta-timeline-status");
      const button = (text, title, action) => {
        const made = element("button", "", text);
        made.type = "button";
        made.title = title;
        made.addEventListener("click", action);
        return made;
      };
      bar.append(
        this.searchBox,
        button("‹", "previous event found (Shift Enter)", () => this.goToFound(-1)),
        button("›", "next event found (Enter)", () => this.goToFound(1)),
        this.status,
        button("fit all", "show everything (0)", () => this.fitAll()),
        button("counters", "show all counters, or the first ones", () => this.toggleCounters()),
        button("Open in Perfetto", this.asked.perfetto ? "on this machine" : `at ${PERFETTO}; the trace stays in your browser`, () => this.openPerfetto()),
      );
      this.frame = element("div", "hta-timeline-view");
      this.canvas = element("canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("aria-label", "timeline: zoom with W and S, go with A and D");
      this.tip = element("div", "hta-timeline-tip");
      this.tip.hidden = true;
      this.frame.append(this.canvas, this.tip);
      this.details = element("section", "hta-timeline-details");
      this.details.hidden = true;
      this.root.append(bar, this.frame, this.details);
      this.listen();
      this.resize();
    }

    listen() {
      this.canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
      this.canvas.addEventListener("pointerdown", (event) => this.onDown(event));
      this.canvas.addEventListener("pointermove", (event) => this.onMove(event));
      this.canvas.addEventListener("pointerup", (event) => this.onUp(event));
      this.canvas.addEventListener("pointerleave", () => this.onLeave());
      this.canvas.addEventListener("dblclick", () => this.fitSelected());
      let typed = 0;
      this.searchBox.addEventListener("input", () => {
        window.clearTimeout(typed);
        typed = window.setTimeout(() => this.search(this.searchBox.value), 250);
      });
      this.searchBox.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
          this.goToFound(event.shiftKey ? -1 : 1);
        } else if (event.key === "Escape") {
          this.canvas.focus();
        }
      });
      this.sizes = new ResizeObserver(() => this.resize());
      this.sizes.observe(this.root);
      this.themes = new MutationObserver(() => this.draw());
      this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mantine-color-scheme"] });
    }

    close() {
      this.sizes.disconnect();
      this.themes.disconnect();
      this.isClosed = true;
      this.ranks.forEach((rank) => rank.request && rank.request.abort());
      this.root.replaceChildren();
    }

    say(text) {
      this.status.textContent = text;
    }

    // Read the ranks one after the other; each is drawn as soon as it is there.
    async open() {
      const { run, ranks, devices } = this.asked;
      this.say("opening");
      const known = await ask("ranks", { run, ranks }, { waiting: (text) => this.say(text) });
      const wanted = devices ? new Set(this.numbers(devices)) : null;
      for (const number of known.ranks) {
        if (this.isClosed) {
          return;
        }
        const waiting = (text) => this.say(`rank ${number}: ${text}`);
        const found = await ask("rows", { run, rank: number }, { waiting });
        this.addRank(number, found, wanted);
      }
      const left = known.count - known.ranks.length;
      this.say(left > 0 ? `${known.ranks.length} of ${known.count} ranks; choose others above` : "");
      await this.goToAsked();
    }

    numbers(text) {
      return text.split(",").flatMap((part) => {
        const [first, last] = part.split("-").map(Number);
        return Array.from({ length: (last ?? first) - first + 1 }, (_, at) => first + at);
      });
    }

    addRank(number, found, devices) {
      this.base = this.base ?? BigInt(found.origin);
      const offset = Number(BigInt(found.origin) - this.base);
      const isShown = (device) => !devices || device === null || devices.has(device);
      const rows = found.rows.map((row, at) => ({ ...row, at })).filter((row) => isShown(row.device));
      const rank = { number, offset, length: found.length, steps: found.steps, rows, lanes: new Map(), counters: [] };
      this.ranks.push(rank);
      this.arrange();
      const steps = this.asked.steps ? new Set(this.numbers(this.asked.steps)) : null;
      const chosen = found.steps.filter((step) => steps && steps.has(step[2]));
      if (!this.wasMoved) {
        const first = Math.min(...this.ranks.map((each) => each.offset));
        const last = Math.max(...this.ranks.map((each) => each.offset + each.length));
        this.whole = { start: first, end: Math.max(last, first + 1) };
        this.view = chosen.length
          ? { start: offset + chosen[0][0], end: offset + chosen[chosen.length - 1][1] }
          : { ...this.whole };
      }
      this.changed();
    }

    // After the first slices of a rank, which they would hold up.
    async loadCounters(rank) {
      rank.hasCounters = true;
      const shown = new Set(rank.rows.map((row) => row.device));
      const isShown = (device) => device === null || shown.has(device);
      try {
        const known = await ask("counters", { run: this.asked.run, rank: rank.number });
        rank.counters = known.map((counter, at) => ({ ...counter, at })).filter((counter) => isShown(counter.device));
        this.arrange();
        this.changed();
      } catch (error) {
        this.say(error.message);
      }
    }

    // Give everything its place from top to bottom.
    arrange() {
      this.items = [];
      let top = 0;
      const put = (item, height) => {
        this.items.push({ ...item, top, height });
        top += height;
      };
      for (const rank of this.ranks) {
        put({ kind: "rank", rank }, HEAD);
        if (rank.isFolded) {
          continue;
        }
        const counters = this.allCounters ? rank.counters : rank.counters.slice(0, FIRST_COUNTERS);
        counters.forEach((counter) => put({ kind: "counter", rank, counter }, COUNTER));
        for (const row of rank.rows) {
          put({ kind: "row", rank, row }, (row.isFolded ? 1 : row.lanes) * LANE + GAP);
        }
      }
      this.bottom = top;
    }

    toggleCounters() {
      this.allCounters = !this.allCounters;
      this.arrange();
      this.changed();
    }

    resize() {
      const top = this.frame.getBoundingClientRect().top + window.scrollY;
      const below = this.details.hidden ? 60 : 300;
      this.width = Math.max(this.root.clientWidth - 2, 320);
      this.height = clamp(window.innerHeight - top - below, 320, 1200);
      const ratio = window.devicePixelRatio || 1;
      if (this.canvas.width !== Math.round(this.width * ratio) || this.canvas.height !== Math.round(this.height * ratio)) {
        this.canvas.width = Math.round(this.width * ratio);
        this.canvas.height = Math.round(this.height * ratio);
        this.canvas.style.width = `${this.width}px`;
        this.canvas.style.height = `${this.height}px`;
        this.changed();
      }
    }

    get pixels() {
      return this.width - LABELS;
    }

    x(ns) {
      return LABELS + ((ns - this.view.start) / (this.view.end - this.view.start)) * this.pixels;
    }

    timeAt(x) {
      return this.view.start + ((x - LABELS) / this.pixels) * (this.view.end - this.view.start);
    }

    y(top) {
      return RULER + top - this.scroll;
    }

    itemAt(y) {
      const at = y - RULER + this.scroll;
      return y < RULER ? undefined : (this.items || []).find((item) => at >= item.top && at < item.top + item.height);
    }

    rowItem(rank, row) {
      return this.items.find((item) => item.kind === "row" && item.rank.number === rank && item.row.at === row);
    }

    changed() {
      if (!this.view || this.isClosed) {
        return;
      }
      this.scroll = clamp(this.scroll, 0, Math.max(0, this.bottom - (this.height - RULER)));
      this.draw();
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.load(), 30);
    }

    // Ask for what is in view, and a quarter of it on either side.
    load() {
      const width = this.view.end - this.view.start;
      const window_ = { start: this.view.start - width / 4, end: this.view.end + width / 4 };
      const pixels = clamp(Math.round(this.pixels * 1.5), 16, 8192);
      for (const rank of this.ranks) {
        const items = this.items.filter((item) => item.rank === rank && this.y(item.top) < this.height && this.y(item.top + item.height) > RULER);
        const parameters = {
          run: this.asked.run,
          rank: rank.number,
          start: Math.floor(window_.start - rank.offset),
          end: Math.ceil(window_.end - rank.offset),
          pixels,
        };
        if (parameters.end <= parameters.start) {
          parameters.end = parameters.start + 1;
        }
        const rows = items.filter((item) => item.kind === "row").map((item) => item.row.at);
        const counters = items.filter((item) => item.kind === "counter").map((item) => item.counter);
        this.loadRank(rank, rows, counters, parameters);
      }
    }

    async loadRank(rank, rows, counters, parameters) {
      if (rank.request) {
        rank.request.abort();
      }
      rank.request = new AbortController();
      const { signal } = rank.request;
      try {
        if (rows.length) {
          rank.lanes = decoded(await ask("slices", { ...parameters, rows: rows.join(","), text: this.pattern }, { signal }));
          this.draw();
          if (!rank.hasCounters) {
            this.loadCounters(rank);
          }
        }
        if (counters.length) {
          const numbers = counters.map((counter) => counter.at).join(",");
          const answers = await ask("counter", { ...parameters, numbers }, { signal });
          answers.forEach((answer) => {
            const counter = counters.find((each) => each.at === answer.number);
            counter.series = { ...answer, end: parameters.end };
          });
          this.draw();
        }
      } catch (error) {
        if (error.name !== "AbortError") {
          this.say(error.message);
        }
      }
    }

    draw() {
      if (!this.view || this.isDrawing) {
        return;
      }
      this.isDrawing = true;
      window.requestAnimationFrame(() => {
        this.isDrawing = false;
        if (!this.isClosed) {
          this.paint();
        }
      });
    }

    paint() {
      const style = getComputedStyle(document.documentElement);
      this.isDark = document.documentElement.dataset.mantineColorScheme === "dark";
      const colour = (name, light, dark) => style.getPropertyValue(name).trim() || (this.isDark ? dark : light);
      this.paper = colour("--mantine-color-body", "#ffffff", "#171c23");
      this.ink = colour("--mantine-color-text", "#1f2933", "#e5e9f0");
      this.faint = this.isDark ? "#2c3440" : "#e4e8ee";
      this.muted = this.isDark ? "#9aa7b6" : "#5f6b7a";
      const ratio = window.devicePixelRatio || 1;
      const pen = this.canvas.getContext("2d");
      this.pen = pen;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.fillStyle = this.paper;
      pen.fillRect(0, 0, this.width, this.height);
      pen.font = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
      pen.textBaseline = "middle";
      this.characterWidth = pen.measureText("abcdefghij(ABCDE:_0123").width / 22;
      pen.save();
      pen.beginPath();
      pen.rect(0, RULER, this.width, this.height - RULER);
      pen.clip();
      this.paintGrid();
      for (const item of this.items) {
        if (this.y(item.top) < this.height && this.y(item.top + item.height) > RULER) {
          this[{ rank: "paintRank", counter: "paintCounter", row: "paintRow" }[item.kind]](item);
        }
      }
      this.paintArrows();
      pen.restore();
      this.paintRuler();
      this.paintRange();
    }

    inPlot(paint) {
      this.pen.save();
      this.pen.beginPath();
      this.pen.rect(LABELS, RULER, this.pixels, this.height - RULER);
      this.pen.clip();
      paint();
      this.pen.restore();
    }

    ticks() {
      const rough = ((this.view.end - this.view.start) / this.pixels) * 110;
      const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
      const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough) || power * 10;
      const ticks = [];
      const zero = this.whole ? this.whole.start : 0;
      for (let at = Math.ceil((this.view.start - zero) / step) * step; at + zero <= this.view.end; at += step) {
        ticks.push(at);
      }
      return ticks.map((at) => [at + zero, moment(at, step)]);
    }

    paintGrid() {
      this.pen.fillStyle = this.faint;
      for (const [time] of this.ticks()) {
        this.pen.fillRect(Math.round(this.x(time)), RULER, 1, this.height);
      }
    }

    paintRuler() {
      const { pen } = this;
      pen.fillStyle = this.paper;
      pen.fillRect(0, 0, this.width, RULER);
      pen.fillStyle = this.muted;
      pen.fillText(duration(this.view.end - this.view.start), 10, 10);
      pen.save();
      pen.beginPath();
      pen.rect(LABELS, 0, this.pixels, RULER);
      pen.clip();
      this.ticks().forEach(([time, label]) => pen.fillText(label, this.x(time) + 3, 10));
      this.paintSteps();
      pen.restore();
      pen.fillStyle = this.faint;
      pen.fillRect(0, RULER - 1, this.width, 1);
      pen.fillRect(LABELS - 1, 0, 1, this.height);
    }

    // The training steps of the first rank stand under the ruler.
    paintSteps() {
      const [rank] = this.ranks;
      (rank ? rank.steps : []).forEach(([start, end, number], place) => {
        const [left, right] = [this.x(start + rank.offset), this.x(end + rank.offset)];
        if (right < LABELS || left > this.width || right - left < 2) {
          return;
        }
        this.pen.fillStyle = place % 2 ? (this.isDark ? "#2b3a4d" : "#dbe7f3") : (this.isDark ? "#3a3350" : "#e8e2f4");
        this.pen.fillRect(left, 18, right - left, 14);
        this.pen.fillStyle = this.ink;
        this.text(`step ${number}`, left, right - left, 25);
      });
    }

    paintRange() {
      if (this.range) {
        const [left, right] = this.range.map((time) => this.x(time));
        this.pen.fillStyle = this.isDark ? "rgb(120 170 255 / 25%)" : "rgb(40 110 220 / 18%)";
        this.pen.fillRect(left, RULER, right - left, this.height);
        this.pen.fillStyle = this.ink;
        this.pen.fillText(duration(Math.abs(this.range[1] - this.range[0])), Math.min(left, right) + 4, RULER + 10);
      }
    }

    paintRank({ rank, top }) {
      const { pen } = this;
      pen.fillStyle = this.isDark ? "#222a35" : "#f1f4f8";
      pen.fillRect(0, this.y(top), this.width, HEAD);
      pen.fillStyle = this.ink;
      pen.font = `600 ${pen.font}`;
      pen.fillText(`${rank.isFolded ? "▸" : "▾"} rank ${rank.number}`, 8, this.y(top) + HEAD / 2);
      pen.font = pen.font.replace("600 ", "");
    }

    label(first, second, top, height) {
      const { pen } = this;
      const room = Math.floor((LABELS - 18) / this.characterWidth);
      const cut = (text) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
      pen.fillStyle = this.ink;
      pen.fillText(cut(first), 10, this.y(top) + 9);
      if (second && height >= 2 * LANE) {
        pen.fillStyle = this.muted;
        pen.fillText(cut(second), 10, this.y(top) + 23);
      }
    }

    paintCounter({ rank, counter, top }) {
      const { series } = counter;
      this.label(counter.label, `up to ${amount(counter.highest, counter.unit)}`, top, COUNTER);
      if (!series || !series.time.length) {
        return;
      }
      this.inPlot(() => {
        this.area(rank, counter, series.highest, top, this.isDark ? "#33507a" : "#bcd3ee");
        this.area(rank, counter, series.mean, top, this.isDark ? "#5b8fd0" : "#5b94d0");
      });
    }

    area(rank, counter, values, top, colour) {
      const { pen } = this;
      const { time, end } = counter.series;
      const bottom = this.y(top) + COUNTER - 4;
      const height = (value) => (Math.max(value, 0) / (counter.highest || 1)) * (COUNTER - 8);
      pen.fillStyle = colour;
      pen.beginPath();
      pen.moveTo(this.x(time[0] + rank.offset), bottom);
      time.forEach((at, place) => {
        const level = bottom - height(values[place]);
        pen.lineTo(this.x(at + rank.offset), level);
        pen.lineTo(this.x((place + 1 < time.length ? time[place + 1] : end) + rank.offset), level);
      });
      pen.lineTo(this.x(end + rank.offset), bottom);
      pen.fill();
    }

    paintRow({ rank, row, top, height }) {
      const mark = row.lanes > 1 ? (row.isFolded ? "▸ " : "▾ ") : "";
      const hidden = row.hidden ? ` (${row.hidden.toLocaleString("en")} not drawn)` : "";
      const named = row.device === null ? row.label : `GPU ${row.device} ${row.label}`;
      this.label(`${mark}${named}${hidden}`, row.process, top, height);
      this.inPlot(() => {
        for (let depth = 0; depth < (row.isFolded ? 1 : row.lanes); depth += 1) {
          const lane = rank.lanes.get(`${row.at}/${depth}`);
          (lane ? lane.slices : []).forEach((slice) => this.paintSlice(rank, slice, this.y(top) + depth * LANE));
        }
      });
    }

    paintSlice(rank, slice, y) {
      const { pen } = this;
      const left = this.x(slice.start + rank.offset);
      const right = this.x(slice.start + slice.length + rank.offset);
      if (right < LABELS - 1 || left > this.width) {
        return;
      }
      const width = Math.max(right - left, 1);
      const isOther = this.pattern && !slice.name.isFound;
      const filled = slice.count > 1 ? 0.35 + 0.65 * Math.min(1, slice.busy / Math.max(slice.length, 1)) : 1;
      pen.globalAlpha = filled * (isOther ? 0.25 : 1);
      pen.fillStyle = slice.name.colour;
      pen.fillRect(left, y + 1, width > 3 ? width - 0.5 : width, LANE - 2);
      if (slice.count === 1 && width > 24) {
        pen.fillStyle = "#ffffff";
        this.text(slice.name.text, left, width, y + LANE / 2);
      }
      pen.globalAlpha = 1;
      if (this.selected && this.selected.event === slice.event && this.selected.rank === rank.number) {
        pen.strokeStyle = this.ink;
        pen.lineWidth = 2;
        pen.strokeRect(left, y + 1, Math.max(width, 2), LANE - 2);
      }
    }

    // As much of a text as there is room for between the edges that are in view.
    text(text, left, width, y) {
      const from = Math.max(left, LABELS);
      const count = Math.floor((Math.min(left + width, this.width) - from - 6) / this.characterWidth);
      if (count >= 3) {
        this.pen.fillText(text.length > count ? `${text.slice(0, count - 1)}…` : text, from + 3, y);
      }
    }

    middle(rank, [row, depth]) {
      const item = this.rowItem(rank, row);
      return item && this.y(item.top) + (item.row.isFolded ? 0 : depth) * LANE + LANE / 2;
    }

    paintArrows() {
      if (!this.selected || !this.selected.at) {
        return;
      }
      const rank = this.ranks.find((each) => each.number === this.selected.rank);
      this.inPlot(() => {
        for (const { relation, at } of this.links) {
          if (relation !== "operator") {
            const isBackwards = relation === "launch" || relation === "forward";
            this.arrow(rank, ...(isBackwards ? [at, this.selected.at] : [this.selected.at, at]), relation.endsWith("ward"));
          }
        }
      });
    }

    arrow(rank, from, to, isGradient) {
      const [fromY, toY] = [this.middle(rank.number, from), this.middle(rank.number, to)];
      if (fromY === undefined || toY === undefined) {
        return;
      }
      const { pen } = this;
      const fromX = this.x(from[2] + rank.offset);
      const toX = this.x(to[2] + rank.offset);
      const bend = Math.max(30, Math.abs(toX - fromX) / 3);
      pen.strokeStyle = isGradient ? "#c0489a" : this.isDark ? "#f0b64c" : "#b06a00";
      pen.fillStyle = pen.strokeStyle;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(fromX, fromY);
      pen.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(toX, toY);
      pen.lineTo(toX - 7, toY - 4);
      pen.lineTo(toX - 7, toY + 4);
      pen.fill();
    }

    sliceAt(x, y) {
      const item = this.itemAt(y);
      if (!item || item.kind !== "row" || x < LABELS) {
        return null;
      }
      const depth = item.row.isFolded ? 0 : Math.floor((y - this.y(item.top)) / LANE);
      const lane = item.rank.lanes.get(`${item.row.at}/${depth}`);
      const pixel = (this.view.end - this.view.start) / this.pixels;
      const time = this.timeAt(x) - item.rank.offset;
      let best = null;
      let nearest = 3 * pixel;
      for (const slice of lane ? lane.slices : []) {
        const distance = Math.max(slice.start - time, time - slice.start - slice.length, 0);
        if (distance < nearest) {
          [best, nearest] = [slice, distance];
        }
      }
      return best && { rank: item.rank, slice: best };
    }

    move(start, end) {
      const least = 20;
      const width = Math.max(end - start, least);
      const whole = this.whole.end - this.whole.start;
      const kept = Math.min(width, whole * 1.2 + least);
      const middle = clamp((start + end) / 2, this.whole.start - kept / 2, this.whole.end + kept / 2);
      this.view = { start: middle - kept / 2, end: middle + kept / 2 };
      this.wasMoved = true;
      this.changed();
    }

    zoom(factor, x) {
      const at = this.timeAt(clamp(x, LABELS, this.width));
      this.move(at - (at - this.view.start) * factor, at + (this.view.end - at) * factor);
    }

    pan(share) {
      const by = share * (this.view.end - this.view.start);
      this.move(this.view.start + by, this.view.end + by);
    }

    fitAll() {
      if (this.whole) {
        this.move(this.whole.start, this.whole.end);
      }
    }

    fitSelected() {
      if (this.selected && this.selected.at) {
        this.show(this.selected.rank, this.selected.at);
      }
    }

    // Bring an event into view, with as much again on either side.
    show(number, [row, depth, start, length]) {
      const rank = this.ranks.find((each) => each.number === number);
      if (!rank) {
        return;
      }
      const margin = Math.max(length, 1_000) * 1.5;
      rank.isFolded = false;
      this.arrange();
      const item = this.rowItem(number, row);
      if (item) {
        const top = item.top + depth * LANE;
        if (this.y(top) < RULER || this.y(top + LANE) > this.height) {
          this.scroll = top - (this.height - RULER) / 2;
        }
      }
      this.move(start + rank.offset - margin, start + rank.offset + length + margin);
    }

    onWheel(event) {
      if (!this.view) {
        return;
      }
      event.preventDefault();
      const { offsetX: x, deltaX, deltaY } = event;
      if (x < LABELS) {
        this.scroll += deltaY;
        this.changed();
      } else if (event.shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) {
        this.pan((deltaX || deltaY) / this.pixels);
      } else {
        this.zoom(Math.exp(clamp(deltaY, -200, 200) * 0.002), x);
      }
    }

    onDown(event) {
      if (!this.view || event.button !== 0) {
        return;
      }
      this.canvas.focus({ preventScroll: true });
      this.canvas.setPointerCapture(event.pointerId);
      const { offsetX: x, offsetY: y } = event;
      this.drag = { x, y, view: { ...this.view }, scroll: this.scroll, isRange: event.shiftKey, isClick: true };
      this.tip.hidden = true;
    }

    onMove(event) {
      const { offsetX: x, offsetY: y } = event;
      this.pointer = { x, y };
      if (!this.view) {
        return;
      }
      if (!this.drag) {
        this.showTip(x, y);
        return;
      }
      this.drag.isClick = this.drag.isClick && Math.hypot(x - this.drag.x, y - this.drag.y) < 4;
      if (this.drag.isClick) {
        return;
      }
      if (this.drag.isRange) {
        this.range = [this.timeAt(Math.max(this.drag.x, LABELS)), this.timeAt(Math.max(x, LABELS))];
        this.draw();
      } else {
        const by = ((this.drag.x - x) / this.pixels) * (this.drag.view.end - this.drag.view.start);
        this.scroll = this.drag.scroll + this.drag.y - y;
        this.move(this.drag.view.start + by, this.drag.view.end + by);
      }
    }

    onUp(event) {
      const { drag, range } = this;
      this.drag = null;
      this.range = null;
      if (drag && drag.isClick) {
        this.click(event.offsetX, event.offsetY);
      } else if (range) {
        this.move(Math.min(...range), Math.max(...range));
      }
    }

    onLeave() {
      this.pointer = null;
      this.tip.hidden = true;
    }

    click(x, y) {
      const item = this.itemAt(y);
      if (item && item.kind === "rank") {
        item.rank.isFolded = !item.rank.isFolded;
      } else if (item && item.kind === "row" && x < LABELS) {
        item.row.isFolded = item.row.lanes > 1 && !item.row.isFolded;
      } else {
        const hit = this.sliceAt(x, y);
        this.select(hit && hit.rank.number, hit && hit.slice.event);
        return;
      }
      this.arrange();
      this.changed();
    }

    showTip(x, y) {
      const lines = this.tipLines(x, y);
      this.tip.hidden = !lines;
      if (lines) {
        this.tip.textContent = lines.join("\n");
        this.tip.style.left = `${x + 14 + this.tip.offsetWidth > this.width ? Math.max(0, x - this.tip.offsetWidth - 10) : x + 14}px`;
        this.tip.style.top = `${Math.max(0, Math.min(y + 14, this.height - this.tip.offsetHeight - 4))}px`;
      }
    }

    tipLines(x, y) {
      const hit = this.sliceAt(x, y);
      if (hit) {
        const { slice } = hit;
        return slice.count > 1
          ? [`${slice.count.toLocaleString("en")} events, busy for ${duration(slice.busy)} of ${duration(slice.length)}`, `the longest: ${slice.name.text}`]
          : [slice.name.text, duration(slice.length)];
      }
      const item = this.itemAt(y);
      if (item && item.kind === "row" && x < LABELS) {
        return [`${item.row.process}, ${item.row.label}`, `${item.row.events.toLocaleString("en")} events`];
      }
      if (item && item.kind === "counter" && x >= LABELS && item.counter.series) {
        const { time, mean } = item.counter.series;
        const at = time.filter((each) => each <= this.timeAt(x) - item.rank.offset).length - 1;
        return at >= 0 ? [item.counter.label, amount(mean[at], item.counter.unit)] : null;
      }
      return null;
    }

    async select(rank, event) {
      this.links = [];
      this.selected = event === null || event === undefined ? null : { rank, event };
      this.remember();
      if (!this.selected) {
        this.details.hidden = true;
        this.resize();
        this.draw();
        return null;
      }
      const { selected } = this;
      const parameters = { run: this.asked.run, rank, event };
      try {
        const found = await ask("event", parameters);
        if (this.selected !== selected) {
          return null;
        }
        selected.at = found.at;
        this.describe(rank, found);
        this.draw();
        this.follow(selected, parameters);
        return found;
      } catch (error) {
        this.say(error.message);
        return null;
      }
    }

    async follow(selected, parameters) {
      this.linkBox.replaceChildren(element("li", "", "looking for what belongs to it"));
      try {
        const links = await ask("links", parameters);
        if (this.selected === selected) {
          this.links = links;
          this.listLinks(selected.rank);
          this.draw();
        }
      } catch (error) {
        this.say(error.message);
      }
    }

    describe(rank, found) {
      const [row, , start, length] = found.at;
      const item = this.rowItem(rank, row);
      const where = item ? `, ${item.row.process}, ${item.row.label}` : "";
      const heading = element("h4", "", found.name);
      const summary = element("p", "", `${found.kind} of ${duration(length)} at ${duration(start)}, rank ${rank}${where}`);
      const facts = element("dl");
      const exact = [["start_ns", found.start_ns], ["duration_ns", String(length)], ...found.arguments];
      exact.forEach(([name, value]) => facts.append(element("dt", "", name), element("dd", "", value)));
      this.linkBox = element("ul");
      this.inside = found.inside;
      this.details.replaceChildren(heading, summary, facts, this.linkBox);
      this.details.hidden = false;
      this.listLinks(rank);
      this.resize();
    }

    listLinks(rank) {
      const inside = this.inside.map((each) => ({ ...each, relation: "inside" }));
      this.linkBox.replaceChildren(...[...this.links, ...inside].map(({ relation, name, at }) => {
        const line = element("li");
        const button = element("button", "", `${name} (${duration(at[3])})`);
        button.type = "button";
        button.addEventListener("click", () => {
          this.goTo(rank, at);
        });
        line.append(element("span", "", relation), button);
        return line;
      }));
    }

    // Keep the selected event in the address.
    remember() {
      const parameters = new URLSearchParams(window.location.search);
      if (this.selected) {
        parameters.set("event", `${this.selected.rank}:${this.selected.event}`);
        parameters.delete("find");
      } else {
        parameters.delete("event");
      }
      window.history.replaceState(window.history.state, "", `?${parameters.toString().replaceAll("%2C", ",")}`);
    }

    async goToAsked() {
      const [rank, event] = (this.asked.event || "").split(":").map(Number);
      if (this.asked.event && Number.isInteger(rank) && Number.isInteger(event)) {
        const found = await this.select(rank, event);
        if (found) {
          this.show(rank, found.at);
        }
      } else if (this.asked.find) {
        this.searchBox.value = this.asked.find;
        const longest = await this.search(this.asked.find);
        if (longest) {
          await this.goTo(longest.rank, longest.at);
        }
      }
    }

    // Find events on all ranks; return the longest.
    async search(text) {
      this.pattern = text.trim().toLowerCase();
      this.found = [];
      this.foundAt = -1;
      this.changed();
      if (!this.pattern) {
        this.say("");
        return null;
      }
      const { pattern } = this;
      const rowsOf = (rank) => rank.rows.map((row) => row.at).join(",");
      const asked = this.ranks.map((rank) =>
        ask("search", { run: this.asked.run, rank: rank.number, rows: rowsOf(rank), text: pattern }));
      try {
        const answers = await Promise.all(asked);
        if (this.pattern !== pattern) {
          return null;
        }
        const placed = answers.flatMap((answer, at) =>
          answer.found.map((place) => ({ rank: this.ranks[at].number, at: place, time: place[2] + this.ranks[at].offset })));
        this.found = placed.sort((one, other) => one.time - other.time);
        this.total = answers.reduce((sum, answer) => sum + answer.count, 0);
        this.say(`${this.total.toLocaleString("en")} found`);
        const longest = answers.map((answer, at) => answer.longest && { rank: this.ranks[at].number, at: answer.longest });
        return longest.filter(Boolean).sort((one, other) => other.at[3] - one.at[3])[0] || null;
      } catch (error) {
        this.say(error.message);
        return null;
      }
    }

    goToFound(by) {
      if (!this.found.length) {
        return;
      }
      const from = this.foundAt < 0 && by < 0 ? 0 : this.foundAt;
      this.foundAt = (from + by + this.found.length) % this.found.length;
      const { rank, at } = this.found[this.foundAt];
      this.say(`${(this.foundAt + 1).toLocaleString("en")} of ${this.total.toLocaleString("en")} found`);
      this.goTo(rank, at);
    }

    async goTo(rank, at) {
      await this.select(rank, at[4]);
      this.show(rank, at);
    }

    onKey(event) {
      const key = event.key.toLowerCase();
      if (KEYS.has(key)) {
        this.hold(key);
      } else if (key === "f") {
        this.fitSelected();
      } else if (key === "0") {
        this.fitAll();
      } else if (key === "/") {
        this.searchBox.focus();
      } else if (key === "escape" && this.selected) {
        this.select(null, null);
      } else {
        return false;
      }
      return true;
    }

    // While a key is held, each frame goes on a little.
    hold(key) {
      const wasIdle = this.held.size === 0;
      this.held.add(key);
      if (wasIdle && this.view) {
        this.last = performance.now() - 16;
        window.requestAnimationFrame(() => this.glide());
      }
    }

    glide() {
      if (!this.held.size || this.isClosed) {
        return;
      }
      const now = performance.now();
      const passed = Math.min(now - this.last, 60) / 1000;
      this.last = now;
      const x = this.pointer && this.pointer.x > LABELS ? this.pointer.x : LABELS + this.pixels / 2;
      const speed = (one, other) => (this.held.has(one) ? 1 : 0) - (this.held.has(other) ? 1 : 0);
      if (speed("w", "s")) {
        this.zoom(Math.exp(-speed("w", "s") * 3 * passed), x);
      }
      if (speed("d", "a")) {
        this.pan(speed("d", "a") * 0.9 * passed);
      }
      window.requestAnimationFrame(() => this.glide());
    }

    async openPerfetto() {
      const rank = this.selected ? this.selected.rank : this.ranks.length ? this.ranks[0].number : null;
      if (rank === null) {
        return;
      }
      const file = new URL(`timeline/file?${new URLSearchParams({ run: this.asked.run, rank })}`, window.location.href);
      if (this.asked.perfetto) {
        window.open(`timeline/perfetto/index.html#!/?mode=embedded&url=${encodeURIComponent(file.href)}`);
        return;
      }
      const opened = window.open(PERFETTO);
      if (!opened) {
        this.say("the browser kept the window of Perfetto from opening");
        return;
      }
      this.say("handing the trace to Perfetto");
      try {
        const response = await fetch(file);
        if (!response.ok) {
          throw new Error((await response.json()).error);
        }
        const buffer = await response.arrayBuffer();
        await this.greet(opened);
        opened.postMessage({ perfetto: { buffer, title: `rank ${rank}` } }, PERFETTO);
        this.say("");
      } catch (error) {
        this.say(error.message);
      }
    }

    // Perfetto answers PING with PONG once it is ready.
    greet(opened) {
      return new Promise((resolve, reject) => {
        const began = Date.now();
        const answered = (event) => {
          if (event.origin === PERFETTO && event.data === "PONG") {
            finish(resolve);
          }
        };
        const timer = window.setInterval(() => {
          if (opened.closed || Date.now() - began > 60_000) {
            finish(() => reject(new Error("Perfetto did not answer")));
          } else {
            opened.postMessage("PING", PERFETTO);
          }
        }, 100);
        const finish = (then) => {
          window.clearInterval(timer);
          window.removeEventListener("message", answered);
          then();
        };
        window.addEventListener("message", answered);
      });
    }
  }

  let current = null;

  // Dash puts the page in and takes it out again; follow.
  const attach = () => {
    const root = document.getElementById("timeline");
    if (current && (current.root !== root || ASKED.some((key) => current.asked[key] !== root.dataset[key]))) {
      current.close();
      current = null;
    }
    if (root && !current) {
      current = new Timeline(root);
    }
  };

  const isTyping = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable]");

  window.addEventListener("keydown", (event) => {
    if (!current || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
      return;
    }
    if (current.onKey(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }, true);
  window.addEventListener("keyup", (event) => current && current.held.delete(event.key.toLowerCase()), true);
  window.addEventListener("blur", () => current && current.held.clear());
  window.addEventListener("resize", () => current && current.resize());
  new MutationObserver(attach).observe(document.documentElement, {
    childList: true,
    subtree: true,
    attributeFilter: ASKED.map((key) => `data-${key}`),
  });
})();
