// Selects an event or a span of time.

import { toAxis } from "../data/clocks.js";
import { ask } from "../data/server.js";

/** @typedef {import("../../types.js").EventAnswer} EventAnswer */
/** @typedef {import("../../types.js").Selected} Selected */
/** @typedef {import("../../types.js").Span} Span */
/** @typedef {import("../timeline.js").Timeline} Timeline */

export class Selection {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
  }

  /**
   * @param {number | null} rank
   * @param {number} [event]
   */
  async select(rank, event = -1) {
    const { timeline } = this;
    timeline.links = [];
    timeline.span = null;
    timeline.focus = null;
    /** @type {Selected | null} */
    const selected = rank === null ? null : { rank, event };
    timeline.selected = selected;
    timeline.address.write();
    if (!selected) {
      timeline.panel.hide();
      timeline.draw();
      return null;
    }
    const answer = await this.located(selected);
    if (answer) {
      timeline.panel.event(selected.rank, answer);
      timeline.draw();
      this.follow(selected);
    }
    return answer;
  }

  /**
   * Request the selected event and store its position in `selected.at`; return null after an error, or if another event
   * has been selected meanwhile.
   * @param {Selected} selected
   */
  async located(selected) {
    const { timeline } = this;
    try {
      /** @type {EventAnswer} */
      const answer = await ask("event", { run: timeline.run, rank: selected.rank, event: selected.event });
      if (timeline.selected !== selected) {
        return null;
      }
      selected.at = answer.at;
      return answer;
    } catch (error) {
      timeline.sayError(error);
      return null;
    }
  }

  /** @param {Selected} selected */
  async follow(selected) {
    const { timeline } = this;
    timeline.panel.searching();
    try {
      const links = await ask("links", { run: timeline.run, rank: selected.rank, event: selected.event });
      if (timeline.selected === selected) {
        timeline.links = links;
        timeline.panel.links(selected.rank, links);
        timeline.draw();
      }
    } catch (error) {
      timeline.sayError(error);
    }
  }

  /** Clear the selection; return whether anything was selected. */
  unselect() {
    const { focus, panel, selected, span } = this.timeline;
    const wasSelected = Boolean(selected || span || focus) || !panel.root.hidden;
    if (wasSelected) {
      this.select(null);
    }
    return wasSelected;
  }

  /**
   * Select an event and zoom to it, unless the visitor has moved the view before the server answers.
   * @param {number} rank
   * @param {number} event
   */
  async goTo(rank, event) {
    const { movement, view } = this.timeline;
    const { start, end } = view;
    const answer = await this.select(rank, event);
    if (answer && view.start === start && view.end === end) {
      movement.show(rank, answer.at);
    }
  }

  /**
   * Select an event and scroll to its row, without changing the panel. Return the event's position, or null if
   * `located` returns null.
   * @param {number} rank
   * @param {number} event
   */
  async mark(rank, event) {
    const { timeline } = this;
    /** @type {Selected} */
    const selected = { rank, event };
    timeline.selected = selected;
    timeline.links = [];
    timeline.address.write();
    const answer = await this.located(selected);
    if (!answer) {
      return null;
    }
    timeline.movement.reveal(rank, answer.at);
    timeline.changed();
    return answer.at;
  }

  /**
   * Select an event and zoom to it, without changing the panel.
   * @param {number} rank
   * @param {number} event
   */
  async point(rank, event) {
    const at = await this.mark(rank, event);
    if (at) {
      this.timeline.movement.show(rank, at);
    }
  }

  /** @param {Span} span */
  setSpan(span) {
    const { timeline } = this;
    timeline.selected = null;
    timeline.links = [];
    timeline.focus = null;
    timeline.span = span;
    timeline.draw();
  }

  /** Select the time span of the selected event. */
  markSelected() {
    const { selected } = this.timeline;
    const rank = selected && this.timeline.rankOf(selected.rank);
    if (rank && selected.at) {
      const start = Math.round(toAxis(rank.clock, selected.at[2]));
      this.setSpan({ start, end: start + Math.max(selected.at[3], 1), rows: null });
      this.describeSpan();
    }
  }

  /** Show details of the selected span in the panel. */
  async describeSpan() {
    const { span } = this.timeline;
    if (span) {
      this.timeline.address.write();
      await this.timeline.withLater(({ spanDetails }) => spanDetails.describe(span));
    }
  }
}
