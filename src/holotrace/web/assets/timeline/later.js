// The parts of the timeline that the first drawing does not need. They load after the first drawing, or earlier if the
// visitor uses one of them.

import { SpanDetails } from "./area/span_details.js";
import { RowsList } from "./rows/rows_list.js";
import { SqlPanel } from "./sql/sql_panel.js";
import { FlagList } from "./window/flag_list.js";
import { Minimap } from "./window/minimap.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */

export class Later {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.flagList = new FlagList(timeline);
    this.minimap = new Minimap(timeline, {
      move: (start, end) => timeline.movement.moveTo(start, end),
      say: (text) => timeline.say(text),
    });
    this.rowsList = new RowsList(timeline, () => timeline.rowsChanged());
    this.spanDetails = new SpanDetails(timeline);
    this.sql = new SqlPanel(timeline);
    timeline.frame.append(this.rowsList.root);
  }
}
