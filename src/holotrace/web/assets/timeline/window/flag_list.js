// Lists the flags in the panel, where the visitor can rename, show and delete them.

import { LONGEST_NAME } from "../address/texts.js";
import { button, element } from "../elements.js";
import { durationText } from "../../units.js";

/** @typedef {import("../address/texts.js").Flag} Flag */
/** @typedef {import("../timeline.js").Timeline} Timeline */

export class FlagList {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.flags = timeline.flags;
  }

  /** List the flags in the panel. */
  show() {
    this.timeline.panel.list("flags", this.parts());
  }

  parts() {
    const list = element("ul", "holotrace-timeline-flags");
    list.append(...this.flags.all.map((flag) => this.line(flag)));
    const heading = this.flags.all.length ? "Flags" : "No flags";
    const how = "Click on the ruler, or press Shift F, to set a flag. The page's address contains the flags.";
    return [element("h2", "", heading), element("p", "", how), list];
  }

  /** @param {Flag} flag */
  line(flag) {
    const line = element("li");
    const at = durationText(flag.time - this.timeline.view.whole.start);
    const show = () => this.timeline.movement.centre(flag.time, flag.time);
    const remove = button("delete", `delete ${flag.name}`, () => {
      this.flags.remove(flag);
      this.show();
    });
    line.append(this.nameField(flag), button(`at ${at}`, `show ${flag.name}`, show), remove);
    return line;
  }

  /** @param {Flag} flag */
  nameField(flag) {
    const field = element("input");
    field.value = flag.name;
    field.maxLength = LONGEST_NAME;
    field.setAttribute("aria-label", "name of the flag");
    field.addEventListener("input", () => {
      flag.name = field.value;
      this.flags.changed();
    });
    field.addEventListener("keydown", ({ key }) => {
      if (key === "Enter" || key === "Escape") {
        this.timeline.canvas.focus();
      }
    });
    return field;
  }

  /**
   * List the flags and select the name of one of them; the visitor can then type a new name.
   * @param {Flag} flag
   */
  edit(flag) {
    this.show();
    const field = this.timeline.panel.root.querySelectorAll("input")[this.flags.all.indexOf(flag)];
    field?.focus({ preventScroll: true });
    field?.select();
    field?.scrollIntoView({ block: "nearest" });
  }
}
