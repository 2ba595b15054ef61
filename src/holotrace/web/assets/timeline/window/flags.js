// Flags: times that the visitor marks and names.

import { LONGEST_FLAGS, LONGEST_NAME, flagsOf, flagsText } from "../address/texts.js";
import { button, element } from "../elements.js";
import { durationText } from "../../units.js";

/** @typedef {import("../address/texts.js").Flag} Flag */
/** @typedef {import("../timeline.js").Timeline} Timeline */
/**
 * @typedef {object} Actions
 * @property {() => void} changed
 * @property {(flag: Flag) => void} goTo
 * @property {() => void} leave
 * @property {(text: string) => void} say
 */

/**
 * Return the first name of the form "flag 1" that no flag has.
 * @param {Flag[]} flags
 */
export const freeName = (flags) => {
  const names = new Set(flags.map(({ name }) => name));
  const free = flags.findIndex((_, at) => !names.has(`flag ${at + 1}`));
  return `flag ${(free < 0 ? flags.length : free) + 1}`;
};

export class Flags {
  /**
   * @param {Timeline} state
   * @param {Actions} actions
   */
  constructor(state, actions) {
    this.state = state;
    this.actions = actions;
    /** @type {Flag[]} */
    this.all = [];
  }

  /** Set the flags of the address, once the origin of the times is known. */
  open() {
    this.all = flagsOf(this.state.attributes.flags ?? "", this.state.base);
  }

  /**
   * Set a flag at a time, unless the address has no room for it; return the flag.
   * @param {number} time
   */
  add(time) {
    const flag = { time: Math.round(time), name: freeName(this.all) };
    if (flagsText([...this.all, flag], this.state.base).length > LONGEST_FLAGS) {
      this.actions.say("the address has no room for more flags; delete some");
      return null;
    }
    this.all = [...this.all, flag].sort((one, other) => one.time - other.time);
    this.actions.changed();
    return flag;
  }

  /**
   * Return the flag nearest to a time, at most `reach` away.
   * @param {number} time
   * @param {number} reach
   */
  near(time, reach) {
    const [nearest] = [...this.all].sort((one, other) => Math.abs(one.time - time) - Math.abs(other.time - time));
    return nearest && Math.abs(nearest.time - time) <= reach ? nearest : null;
  }

  /** @param {Flag} flag */
  remove(flag) {
    this.all = this.all.filter((other) => other !== flag);
    this.actions.changed();
  }

  /**
   * Return the parts of a list of all flags.
   * @param {() => void} redraw
   */
  list(redraw) {
    const list = element("ul", "holotrace-timeline-flags");
    list.append(...this.all.map((flag) => this.line(flag, redraw)));
    const heading = this.all.length ? "Flags" : "No flags";
    const how = "Click on the ruler, or press Shift F, to set a flag. The address holds the flags.";
    return [element("h2", "", heading), element("p", "", how), list];
  }

  /**
   * @param {Flag} flag
   * @param {() => void} redraw
   */
  line(flag, redraw) {
    const line = element("li");
    const at = durationText(flag.time - this.state.view.whole.start);
    const remove = button("delete", `delete ${flag.name}`, () => {
      this.remove(flag);
      redraw();
    });
    line.append(this.nameField(flag), button(`at ${at}`, `show ${flag.name}`, () => this.actions.goTo(flag)), remove);
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
      this.actions.changed();
    });
    field.addEventListener("keydown", ({ key }) => {
      if (key === "Enter" || key === "Escape") {
        this.actions.leave();
      }
    });
    return field;
  }

  /**
   * Select the name of a flag in the list, so that the visitor can type another one.
   * @param {Flag} flag
   * @param {HTMLElement} list
   */
  edit(flag, list) {
    const field = list.querySelectorAll("input")[this.all.indexOf(flag)];
    field?.focus({ preventScroll: true });
    field?.select();
    field?.scrollIntoView({ block: "nearest" });
  }
}
