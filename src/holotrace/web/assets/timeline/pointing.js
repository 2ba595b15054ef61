"use strict";

// What lies under the pointer, and what is said of it beside the pointer.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const REACH_PX = 3;
  const FINDING_PX = 6;

  const ofSlice = ({ busy, count, length, name }) => {
    const { duration } = timeline.words;
    return count > 1
      ? [`${timeline.words.count(count)} events, busy for ${duration(busy)} of ${duration(length)}`, `the longest: ${name.text}`]
      : [name.text, duration(length)];
  };

  const ofSegment = ({ count, kind, length, name }) => {
    const merged = count > 1 ? [`${timeline.words.count(count)} segments, the longest:`] : [];
    return [...merged, name || "outside of all events", `${kind}, ${timeline.words.duration(length)}`];
  };

  class Pointing {
    constructor(view) {
      this.view = view;
      this.tip = timeline.words.element("div", "holotrace-timeline-tip");
      this.tip.hidden = true;
    }

    // The nearest of some intervals, at most so many pixels away.
    nearest(intervals, rank, x) {
      const pixel = this.view.length / this.view.pixels;
      const time = this.view.timeAt(x) - rank.offset;
      let [best, distance] = [null, REACH_PX * pixel];
      for (const each of x < timeline.SIZES.labels ? [] : intervals) {
        const away = Math.max(each.start - time, time - each.start - each.length, 0);
        if (away < distance) {
          [best, distance] = [each, away];
        }
      }
      return best;
    }

    sliceAt(item, x, y) {
      if (!item || item.kind !== "row") {
        return null;
      }
      const depth = item.row.isFolded ? 0 : Math.floor((y - this.view.y(item.top)) / timeline.SIZES.lane);
      return this.nearest(item.rank.lanes.get(`${item.row.at}/${depth}`) || [], item.rank, x);
    }

    segmentAt(item, x) {
      return item && item.kind === "path" && item.rank.path ? this.nearest(item.rank.path.along, item.rank, x) : null;
    }

    findingAt(item, x, y) {
      if (!item || item.kind !== "findings") {
        return null;
      }
      const kind = Object.keys(timeline.colours.findings)[Math.floor((y - this.view.y(item.top) - 1) / FINDING_PX)];
      const known = (item.rank.findings || []).filter((each) => each.kind === kind);
      return this.nearest(known.map((each) => ({ ...each, length: each.end - each.start })), item.rank, x);
    }

    show(pointer) {
      const lines = pointer && this.lines(pointer.x, pointer.y);
      this.tip.hidden = !lines;
      if (lines) {
        const { x, y } = pointer;
        const { height, width } = this.view;
        this.tip.textContent = lines.join("\n");
        this.tip.style.left = `${x + 14 + this.tip.offsetWidth > width ? Math.max(0, x - this.tip.offsetWidth - 10) : x + 14}px`;
        this.tip.style.top = `${Math.max(0, Math.min(y + 14, height - this.tip.offsetHeight - 4))}px`;
      }
    }

    lines(x, y) {
      const item = this.view.itemAt(y);
      const slice = this.sliceAt(item, x, y);
      const segment = this.segmentAt(item, x);
      const finding = this.findingAt(item, x, y);
      return (slice && ofSlice(slice)) || (segment && ofSegment(segment)) || (finding && [finding.text]) || (item && this.ofItem(item, x));
    }

    ofItem(item, x) {
      const { amount, count } = timeline.words;
      const isLabel = x < timeline.SIZES.labels;
      if (item.kind === "row" && isLabel) {
        return [`${item.row.process}, ${item.row.label}`, `${count(item.row.events)} events`];
      }
      if (item.kind === "counter" && !isLabel && item.counter.series) {
        const { time, mean } = item.counter.series;
        const at = time.filter((each) => each <= this.view.timeAt(x) - item.rank.offset).length - 1;
        return at >= 0 ? [item.counter.label, amount(mean[at], item.counter.unit)] : null;
      }
      return null;
    }
  }

  timeline.Pointing = Pointing;
})();
