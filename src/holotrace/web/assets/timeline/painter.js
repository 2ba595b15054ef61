"use strict";

// Draws what is known on the canvas, whenever something of it changed.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const TICK_PX = 110;
  const MOST_JUMPS = 400;

  class Painter {
    constructor(canvas, state) {
      this.canvas = canvas;
      this.state = state;
      this.view = state.view;
      this.sizes = timeline.SIZES;
    }

    // Take the size of the view; says whether it is another one.
    fit() {
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [this.view.width, this.view.height].map((length) => Math.round(length * ratio));
      if (this.canvas.width === width && this.canvas.height === height) {
        return false;
      }
      [this.canvas.width, this.canvas.height] = [width, height];
      this.canvas.style.width = `${this.view.width}px`;
      this.canvas.style.height = `${this.view.height}px`;
      return true;
    }

    paint() {
      const { view } = this;
      const ratio = window.devicePixelRatio || 1;
      const pen = (this.pen = this.canvas.getContext("2d"));
      this.theme = timeline.colours.theme();
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.fill(0, 0, view.width, view.height, this.theme.paper);
      pen.font = FONT;
      pen.textBaseline = "middle";
      this.characterWidth = pen.measureText("abcdefghij(ABCDE:_0123").width / 22;
      this.within(0, this.sizes.ruler, view.width, view.height - this.sizes.ruler, () => {
        this.grid();
        view.items.filter((item) => view.isVisible(item)).forEach((item) => this[item.kind](item));
        this.inPlot(() => {
          this.span();
          this.focus();
          this.jumps();
          this.arrows();
        });
      });
      this.ruler();
    }

    fill(left, top, width, height, colour) {
      this.pen.fillStyle = colour;
      this.pen.fillRect(left, top, width, height);
    }

    within(left, top, width, height, paint) {
      this.pen.save();
      this.pen.beginPath();
      this.pen.rect(left, top, width, height);
      this.pen.clip();
      paint();
      this.pen.restore();
    }

    inPlot(paint) {
      this.within(this.sizes.labels, this.sizes.ruler, this.view.pixels, this.view.height - this.sizes.ruler, paint);
    }

    ticks() {
      const { view } = this;
      const rough = (view.length / view.pixels) * TICK_PX;
      const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
      const step = [1, 2, 5].map((times) => times * power).find((each) => each >= rough) || power * 10;
      const zero = view.whole.start;
      const ticks = [];
      for (let at = Math.ceil((view.start - zero) / step) * step; at + zero <= view.end; at += step) {
        ticks.push([at + zero, timeline.words.moment(at, step)]);
      }
      return ticks;
    }

    grid() {
      this.ticks().forEach(([time]) => this.fill(Math.round(this.view.x(time)), this.sizes.ruler, 1, this.view.height, this.theme.faint));
    }

    ruler() {
      const { pen, theme, view } = this;
      const { labels, ruler } = this.sizes;
      this.fill(0, 0, view.width, ruler, theme.paper);
      pen.fillStyle = theme.muted;
      pen.fillText(timeline.words.duration(view.length), 10, 10);
      this.within(labels, 0, view.pixels, ruler, () => {
        pen.fillStyle = theme.muted;
        this.ticks().forEach(([time, label]) => pen.fillText(label, view.x(time) + 3, 10));
        this.steps();
        this.spanLength();
      });
      this.fill(0, ruler - 1, view.width, 1, theme.faint);
      this.fill(labels - 1, 0, 1, view.height, theme.faint);
    }

    // The training steps of the first rank stand under the ruler.
    steps() {
      const { view } = this;
      const [rank] = this.state.ranks;
      (rank ? rank.steps : []).forEach(([start, end, number], place) => {
        const [left, right] = [view.x(start + rank.offset), view.x(end + rank.offset)];
        if (right >= this.sizes.labels && left <= view.width && right - left >= 2) {
          this.fill(left, 18, right - left, 14, this.theme.steps[place % 2]);
          this.pen.fillStyle = this.theme.ink;
          this.text(`step ${number}`, left, right - left, 25);
        }
      });
    }

    // The span that is selected: over everything, or over some rows.
    span() {
      const { span } = this.state;
      if (!span) {
        return;
      }
      const [left, right] = [this.view.x(span.start), this.view.x(span.end)];
      if (!span.rows) {
        this.fill(left, this.sizes.ruler, right - left, this.view.height, this.theme.span);
        return;
      }
      for (const item of this.view.items) {
        if (item.kind === "row" && (span.rows.get(item.rank.number) || new Set()).has(item.row.at)) {
          this.fill(left, this.view.y(item.top), right - left, item.height, this.theme.span);
        }
      }
    }

    spanLength() {
      const { span } = this.state;
      if (!span) {
        return;
      }
      const [left, right] = [this.view.x(span.start), this.view.x(span.end)];
      const text = timeline.words.duration(span.end - span.start);
      const width = this.pen.measureText(text).width + 8;
      const at = timeline.words.clamp((left + right - width) / 2, this.sizes.labels, this.view.width - width);
      this.fill(left, 0, right - left, this.sizes.ruler, this.theme.span);
      this.fill(at, 2, width, 15, this.theme.ink);
      this.pen.fillStyle = this.theme.paper;
      this.pen.fillText(text, at + 4, 10);
    }

    // The finding that was gone to.
    focus() {
      const { focus } = this.state;
      if (!focus) {
        return;
      }
      const items = this.view.items.filter((item) => item.rank.number === focus.rank);
      const [first, last] = [items[0], items[items.length - 1]];
      if (first) {
        const width = Math.max(this.view.x(focus.end) - this.view.x(focus.start), 2);
        this.fill(this.view.x(focus.start), this.view.y(first.top), width, last.top + last.height - first.top, this.theme.focus);
      }
    }

    label(first, second, top, height) {
      const { pen, theme } = this;
      const room = Math.floor((this.sizes.labels - 18) / this.characterWidth);
      const cut = (text) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
      pen.fillStyle = theme.ink;
      pen.fillText(cut(first), 10, this.view.y(top) + 9);
      if (second && height >= 2 * this.sizes.lane) {
        pen.fillStyle = theme.muted;
        pen.fillText(cut(second), 10, this.view.y(top) + 23);
      }
    }

    rank({ rank, top }) {
      const { pen, sizes, theme, view } = this;
      this.fill(0, view.y(top), view.width, sizes.head, theme.heading);
      pen.fillStyle = theme.ink;
      pen.font = `600 ${FONT}`;
      pen.fillText(`${rank.isFolded ? "▸" : "▾"} rank ${rank.number}`, 8, view.y(top) + sizes.head / 2);
      pen.font = FONT;
    }

    path({ rank, top }) {
      this.label("critical path", "", top, this.sizes.band);
      this.inPlot(() => {
        for (const each of rank.path ? rank.path.along : []) {
          this.box(rank, each, this.view.y(top), timeline.colours.path[each.kind], each.count === 1 ? each.name || each.kind : "");
        }
      });
    }

    findings({ rank, top }) {
      const kinds = Object.keys(timeline.colours.findings);
      this.label(rank.findings ? `findings (${timeline.words.count(rank.findings.length)})` : "findings …", "", top, this.sizes.band);
      this.inPlot(() => {
        for (const { kind, start, end } of rank.findings || []) {
          const left = this.view.x(start + rank.offset);
          const width = Math.max(this.view.x(end + rank.offset) - left, 3);
          this.fill(left, this.view.y(top) + 1 + 6 * kinds.indexOf(kind), width, 5, timeline.colours.findings[kind]);
        }
      });
    }

    counter({ rank, counter, top }) {
      const { series } = counter;
      this.label(counter.label, `up to ${timeline.words.amount(counter.highest, counter.unit)}`, top, this.sizes.counter);
      if (series && series.time.length) {
        this.inPlot(() => {
          this.area(rank, counter, series.highest, top, this.theme.highest);
          this.area(rank, counter, series.mean, top, this.theme.mean);
        });
      }
    }

    area(rank, counter, values, top, colour) {
      const { pen, view } = this;
      const { time, end } = counter.series;
      const bottom = view.y(top) + this.sizes.counter - 4;
      const height = (value) => (Math.max(value, 0) / (counter.highest || 1)) * (this.sizes.counter - 8);
      pen.fillStyle = colour;
      pen.beginPath();
      pen.moveTo(view.x(time[0] + rank.offset), bottom);
      time.forEach((at, place) => {
        const level = bottom - height(values[place]);
        pen.lineTo(view.x(at + rank.offset), level);
        pen.lineTo(view.x((place + 1 < time.length ? time[place + 1] : end) + rank.offset), level);
      });
      pen.lineTo(view.x(end + rank.offset), bottom);
      pen.fill();
    }

    row({ rank, row, top, height }) {
      const mark = row.lanes > 1 ? (row.isFolded ? "▸ " : "▾ ") : "";
      const hidden = row.hidden ? ` (${timeline.words.count(row.hidden)} not drawn)` : "";
      const named = row.device === null ? row.label : `GPU ${row.device} ${row.label}`;
      this.label(`${mark}${named}${hidden}`, row.process, top, height);
      this.inPlot(() => {
        for (let depth = 0; depth < (row.isFolded ? 1 : row.lanes); depth += 1) {
          const [lane, y] = [`${row.at}/${depth}`, this.view.y(top) + depth * this.sizes.lane];
          (rank.lanes.get(lane) || []).forEach((slice) => this.slice(rank, slice, y));
          (this.state.shown.has("path") && rank.path ? rank.path.marks.get(lane) || [] : []).forEach((part) => this.mark(rank, part, y));
        }
      });
    }

    slice(rank, slice, y) {
      const { pattern, selected } = this.state;
      const isOther = pattern && !slice.name.isFound;
      const filled = slice.count > 1 ? 0.35 + 0.65 * Math.min(1, slice.busy / Math.max(slice.length, 1)) : 1;
      this.pen.globalAlpha = filled * (isOther ? 0.25 : 1);
      this.box(rank, slice, y, slice.name.colour, slice.count === 1 ? slice.name.text : "");
      this.pen.globalAlpha = 1;
      if (selected && selected.event === slice.event && selected.rank === rank.number) {
        this.frame(rank, slice, y, this.theme.ink, 2);
      }
    }

    box(rank, { start, length }, y, colour, text) {
      const left = this.view.x(start + rank.offset);
      const right = this.view.x(start + length + rank.offset);
      if (right < this.sizes.labels - 1 || left > this.view.width) {
        return;
      }
      const width = Math.max(right - left, 1);
      this.fill(left, y + 1, width > 3 ? width - 0.5 : width, this.sizes.lane - 2, colour);
      if (text && width > 24) {
        this.pen.fillStyle = "#ffffff";
        this.text(text, left, width, y + this.sizes.lane / 2);
      }
    }

    frame(rank, { start, length }, y, colour, thickness) {
      const [left, right] = [this.view.x(start + rank.offset), this.view.x(start + length + rank.offset)];
      this.pen.strokeStyle = colour;
      this.pen.lineWidth = thickness;
      this.pen.strokeRect(left, y + 1, Math.max(right - left, 2), this.sizes.lane - 2);
    }

    // A part of the critical path on the event that it leads through.
    mark(rank, part, y) {
      const [left, right] = [this.view.x(part.start + rank.offset), this.view.x(part.start + part.length + rank.offset)];
      if (right >= this.sizes.labels - 1 && left <= this.view.width) {
        this.fill(left, y + this.sizes.lane - 5, Math.max(right - left, 1), 4, this.theme.path);
        if (right - left > 6) {
          this.frame(rank, part, y, this.theme.path, 1);
        }
      }
    }

    // Where the critical path goes on in another row; where segments are merged, nobody could follow the lines.
    jumps() {
      for (const rank of this.state.shown.has("path") ? this.state.ranks : []) {
        const { view } = this;
        const along = rank.path ? rank.path.along.filter((each) => each.start + each.length + rank.offset >= view.start && each.start + rank.offset <= view.end) : [];
        if (along.length <= MOST_JUMPS) {
          const isKnown = (each) => each.row >= 0 && each.count === 1;
          along.slice(1).forEach((each, at) => isKnown(each) && isKnown(along[at]) && this.jump(rank, along[at], each));
        }
      }
    }

    jump(rank, from, to) {
      const [above, below] = [from, to].map((each) => this.middle(rank.number, each.row, each.depth));
      if (above === undefined || below === undefined || above === below) {
        return;
      }
      this.pen.strokeStyle = this.theme.path;
      this.pen.lineWidth = 1;
      this.pen.beginPath();
      this.pen.moveTo(this.view.x(from.start + from.length + rank.offset), above);
      this.pen.lineTo(this.view.x(to.start + rank.offset), below);
      this.pen.stroke();
    }

    // As much of a text as there is room for between the edges that are in view.
    text(text, left, width, y) {
      const from = Math.max(left, this.sizes.labels);
      const room = Math.floor((Math.min(left + width, this.view.width) - from - 6) / this.characterWidth);
      if (room >= 3) {
        this.pen.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, from + 3, y);
      }
    }

    middle(rank, row, depth) {
      const item = this.view.rowItem(rank, row);
      return item && this.view.y(item.top) + (item.row.isFolded ? 0 : depth) * this.sizes.lane + this.sizes.lane / 2;
    }

    arrows() {
      const { links, ranks, selected } = this.state;
      const rank = selected && selected.at && ranks.find((each) => each.number === selected.rank);
      for (const { relation, at } of rank ? links : []) {
        if (relation !== "operator") {
          const isBackwards = relation === "launch" || relation === "forward";
          this.arrow(rank, ...(isBackwards ? [at, selected.at] : [selected.at, at]), relation.endsWith("ward"));
        }
      }
    }

    arrow(rank, from, to, isGradient) {
      const [fromY, toY] = [from, to].map(([row, depth]) => this.middle(rank.number, row, depth));
      if (fromY === undefined || toY === undefined) {
        return;
      }
      const { pen, view } = this;
      const [fromX, toX] = [from, to].map((at) => view.x(at[2] + rank.offset));
      const bend = Math.max(30, Math.abs(toX - fromX) / 3);
      pen.strokeStyle = isGradient ? this.theme.gradient : this.theme.launch;
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
  }

  timeline.Painter = Painter;
})();
