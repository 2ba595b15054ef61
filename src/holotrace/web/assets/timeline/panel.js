"use strict";

// What stands below the drawing: an event, a span of time, or the findings.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const MOST_LISTED = 12;

  class Panel {
    // goTo(rank, place) shows an event, goToSpan(rank, finding) a moment.
    constructor(state, { resized, goTo, goToFinding }) {
      this.state = state;
      this.resized = resized;
      this.goTo = goTo;
      this.goToFinding = goToFinding;
      this.root = timeline.words.element("section", "holotrace-timeline-details");
      this.root.hidden = true;
    }

    hide() {
      this.put();
    }

    put(...parts) {
      this.root.classList.remove("holotrace-timeline-span");
      this.root.replaceChildren(...parts);
      this.root.hidden = !parts.length;
      this.resized();
    }

    event(rank, found) {
      const { duration, element } = timeline.words;
      const [row, , start, length] = found.at;
      const item = this.state.view.rowItem(rank, row);
      const where = item ? `, ${item.row.process}, ${item.row.label}` : "";
      const at = start + this.state.rankOf(rank).offset - this.state.view.whole.start;
      const summary = `${found.kind} of ${duration(length)} at ${duration(at)}, rank ${rank}${where}`;
      const facts = element("dl");
      const exact = [["start_ns", found.start_ns], ["duration_ns", String(length)], ...found.arguments];
      exact.forEach(([name, value]) => facts.append(element("dt", "", name), element("dd", "", value)));
      this.linkBox = element("ul");
      this.inside = found.inside.map((each) => ({ ...each, relation: "inside" }));
      this.put(element("h4", "", found.name), element("p", "", summary), facts, this.linkBox);
    }

    searching() {
      this.linkBox.replaceChildren(timeline.words.element("li", "", "looking for what belongs to it"));
    }

    links(rank, links) {
      const { button, duration, element } = timeline.words;
      this.linkBox.replaceChildren(...[...links, ...this.inside].map(({ relation, name, at }) => {
        const line = element("li");
        line.append(element("span", "", relation), button(`${name} (${duration(at[3])})`, `${name}: show it`, () => this.goTo(rank, at[4])));
        return line;
      }));
    }

    // `answers`: [rank, answer] of each rank in the span.
    span(span, answers, actions) {
      const { duration, element } = timeline.words;
      const length = span.end - span.start;
      const zero = this.state.view.whole.start;
      const heading = element("h4", "", `${duration(length)} from ${duration(span.start - zero)} to ${duration(span.end - zero)}`);
      const buttons = element("p", "holotrace-timeline-actions");
      buttons.append(...actions);
      const names = (key) => answers.flatMap(([rank, answer]) => this.namesTable(rank, answer, key, length));
      const left = element("div");
      left.append(...answers.map(([rank, answer]) => this.rowsTable(rank, answer, length)));
      const right = element("div");
      right.append(...names("device"), ...names("host"));
      this.put(heading, buttons, left, right);
      this.root.classList.add("holotrace-timeline-span");
    }

    rowsTable(rank, answer, length) {
      const { count, duration, percent } = timeline.words;
      const rows = answer.rows.map(([row, busy, events]) => {
        const { device, label } = rank.rows.find((each) => each.at === row);
        return [device === null ? label : `GPU ${device} ${label}`, percent(busy / length), duration(busy), count(events)];
      });
      return this.table(`rank ${rank.number}`, ["row", "busy", "time", "events"], rows);
    }

    namesTable(rank, answer, key, length) {
      const { button, count, duration, percent } = timeline.words;
      const shown = answer[key].slice(0, MOST_LISTED);
      const rows = shown.map(([name, events, ns, longest]) => [
        button(name, `${name}: show the longest`, () => this.goTo(rank.number, longest)), percent(ns / length), duration(ns), count(events),
      ]);
      const left = answer[`${key}_count`] - shown.length;
      const caption = `rank ${rank.number}, on ${key === "device" ? "streams" : "threads"}${left > 0 ? ` (and ${count(left)} more)` : ""}`;
      return rows.length ? [this.table(caption, ["name", "of the span", "time", "events"], rows)] : [];
    }

    table(caption, headings, rows) {
      const { element } = timeline.words;
      const table = element("table");
      const head = element("tr");
      head.append(...headings.map((text) => element("th", "", text)));
      table.append(element("caption", "", caption), head);
      for (const cells of rows) {
        const line = element("tr");
        line.append(...cells.map((cell) => {
          const made = element("td", "", typeof cell === "string" ? cell : undefined);
          if (typeof cell !== "string") {
            made.append(cell);
          }
          return made;
        }));
        table.append(line);
      }
      return table;
    }

    // All findings, those of the longest time first.
    findings() {
      const { button, duration, element } = timeline.words;
      const known = this.state.ranks.flatMap((rank) => (rank.findings || []).map((each) => ({ ...each, rank })));
      const list = element("ul", "holotrace-timeline-findings");
      for (const each of known.sort((one, other) => other.end - other.start - (one.end - one.start))) {
        const line = element("li");
        const chip = element("i");
        chip.style.background = timeline.colours.findings[each.kind];
        const when = `at ${duration(each.start + each.rank.offset - this.state.view.whole.start)}`;
        line.append(chip, element("span", "", `rank ${each.rank.number}, ${when}`), button(each.text, "show it", () => this.goToFinding(each.rank, each)));
        list.append(line);
      }
      this.put(element("h4", "", known.length ? "What was noticed" : "Nothing was noticed that has a place in time"), list);
    }
  }

  timeline.Panel = Panel;
})();
