// Opens the SQL box in the panel. When the visitor chooses a row of the result, this module shows the row's event or
// time on the timeline.

import { SqlBox } from "./sql_box.js";

/** @typedef {import("../../types.js").SqlPlace} SqlPlace */
/** @typedef {import("../timeline.js").Timeline} Timeline */

export class SqlPanel {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.box = new SqlBox(
      { run: timeline.run, ranks: timeline.among, query: timeline.query },
      {
        show: (place) => this.show(place),
        asked: (query) => {
          timeline.query = query;
          timeline.address.write();
        },
      },
    );
  }

  open() {
    this.timeline.selection.select(null);
    this.timeline.panel.put(this.box.root);
    this.box.query.focus();
  }

  /** @param {SqlPlace} place */
  async show([number, first, last]) {
    const { movement, opening, selection } = this.timeline;
    try {
      const rank = await opening.loaded(number);
      if (typeof first === "number") {
        await selection.point(number, first);
      } else {
        const [start, end] = [first, last ?? first].map((time) => Number(BigInt(time) - rank.origin));
        movement.goToFinding(rank, { start, end });
      }
    } catch (error) {
      this.timeline.sayError(error);
    }
  }
}
