// Flags: times that the visitor marks and names.

import { LONGEST_FLAGS, flagsOf, flagsText } from "../address/texts.js";
import { toAxis } from "../data/clocks.js";
import { SIZES } from "../view.js";

/** @typedef {import("../address/texts.js").Flag} Flag */
/** @typedef {import("../timeline.js").Timeline} Timeline */

const REACH_PX = 6;

/**
 * Return the first unused name of the form "flag 1".
 * @param {Flag[]} flags
 */
export const freeName = (flags) => {
  const names = new Set(flags.map(({ name }) => name));
  const free = flags.findIndex((_, at) => !names.has(`flag ${at + 1}`));
  return `flag ${(free < 0 ? flags.length : free) + 1}`;
};

export class Flags {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    /** @type {Flag[]} */
    this.all = [];
  }

  /** Set the flags that the address contains; called when the origin of the times is known. */
  open() {
    this.all = flagsOf(this.timeline.attributes.flags ?? "", this.timeline.base);
  }

  /**
   * Add a flag at the given time and return it; null if the address would become too long.
   * @param {number} time
   */
  add(time) {
    const flag = { time: Math.round(time), name: freeName(this.all) };
    if (flagsText([...this.all, flag], this.timeline.base).length > LONGEST_FLAGS) {
      this.timeline.say("the address is too long for more flags; delete some");
      return null;
    }
    this.all = [...this.all, flag].sort((one, other) => one.time - other.time);
    this.changed();
    return flag;
  }

  /**
   * Return the flag nearest to a time; null if it is more than `reach` away.
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
    this.changed();
  }

  changed() {
    this.timeline.draw();
    this.timeline.minimap?.draw();
    this.timeline.address.later();
  }

  /** @param {boolean} isWanted */
  async showList(isWanted) {
    if (isWanted) {
      await this.timeline.withLater(({ flagList }) => flagList.show());
    } else {
      this.timeline.selection.unselect();
    }
  }

  /** @param {Flag} flag */
  edit(flag) {
    this.timeline.withLater(({ flagList }) => flagList.edit(flag));
  }

  /** @param {number} time */
  set(time) {
    const flag = this.add(time);
    if (flag) {
      this.edit(flag);
    }
  }

  /**
   * Set a flag at pixel `x`. If `x` is null or lies left of the time axis, set the flag at the start of the selected
   * event; if no event is selected, set it in the middle of the view.
   * @param {number | null} x
   */
  setAt(x) {
    const { selected, view } = this.timeline;
    const rank = selected && this.timeline.rankOf(selected.rank);
    if (!view.isOpen) {
      return;
    }
    if (x !== null && x > SIZES.labels) {
      this.set(view.timeAt(x));
    } else {
      this.set(rank && selected.at ? toAxis(rank.clock, selected.at[2]) : (view.start + view.end) / 2);
    }
  }

  /**
   * Edit the flag at a pixel of the ruler; if there is none, set a new flag at this pixel.
   * @param {number} x
   */
  press(x) {
    const { view } = this.timeline;
    if (x <= SIZES.labels) {
      return;
    }
    const time = view.timeAt(x);
    const known = this.near(time, (REACH_PX * view.length) / view.pixels);
    if (known) {
      this.edit(known);
    } else {
      this.set(time);
    }
  }
}
