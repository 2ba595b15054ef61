// A flame graph of buttons: a click enlarges a block to the full width, and the arrow keys move between blocks.

import * as colours from "../drawing/colours.js";
import { button, element } from "../elements.js";
import { countText, durationText, percentText } from "../../units.js";
import { blocksOf, visibleBlocks } from "./flame_layout.js";

/** @typedef {import("../../types.js").FlamesAnswer} FlamesAnswer */
/** @typedef {import("./flame_layout.js").Block} Block */

const BLOCK_PX = 18;
const LEAST_FRACTION = 0.002;
const LEAST_FOR_TEXT = 0.02;

export class FlameGraph {
  /**
   * @param {FlamesAnswer} answer
   * @param {(rank: number, event: number) => void} showEvent
   */
  constructor(answer, showEvent) {
    this.total = answer.total_ns;
    this.blocks = blocksOf(answer);
    this.showEvent = showEvent;
    /** @type {Block | null} */
    this.whole = null;
    this.current = this.blocks[0];
    this.root = element("section", "holotrace-flames");
    this.root.setAttribute("aria-label", "flame graph");
    const left = answer.left_out ? `; ${countText(answer.left_out)} narrower ${answer.left_out === 1 ? "path is" : "paths are"} not drawn` : "";
    const caption = element("p", "", `Flame graph: ${durationText(this.total)} on the selected threads${left}`);
    this.said = element("p", "holotrace-flames-said");
    this.said.setAttribute("role", "status");
    const actions = element("p", "holotrace-timeline-actions");
    actions.append(
      button("whole graph", "show the whole flame graph again", () => this.zoom(null)),
      button("show the longest", "show the longest event of this path on the timeline", () => showEvent(...this.current.longest)),
    );
    this.graph = element("div", "holotrace-flames-graph");
    this.graph.dataset.keys = "";
    this.graph.addEventListener("keydown", (event) => this.key(event));
    this.root.append(caption, this.graph, this.said, actions);
    this.draw();
  }

  draw() {
    const visible = visibleBlocks(this.blocks, this.whole, this.total, LEAST_FRACTION);
    const lowest = Math.max(...visible.map(({ block }) => block.depth), 0);
    this.graph.toggleAttribute("data-escape", this.whole !== null);
    this.graph.style.height = `${(lowest + 1) * BLOCK_PX}px`;
    if (!visible.some(({ block }) => block === this.current)) {
      this.current = this.whole ?? this.blocks[0];
    }
    this.graph.replaceChildren(
      ...visible.map(({ block, left, width }) => {
        const made = button(width < LEAST_FOR_TEXT ? "" : block.name, this.text(block), () => this.press(block));
        const colour = colours.ofEvent(block.name, block.colourClass);
        made.setAttribute("aria-label", this.text(block));
        made.tabIndex = block === this.current ? 0 : -1;
        made.dataset.at = String(block.at);
        Object.assign(made.style, {
          left: `${100 * left}%`,
          width: `${100 * width}%`,
          top: `${block.depth * BLOCK_PX}px`,
          background: colour,
          color: colours.contrastingInk(colour),
        });
        made.addEventListener("focus", () => this.say(block));
        made.addEventListener("pointerenter", () => this.say(block));
        return made;
      }),
    );
    this.say(this.current);
  }

  /** @param {Block} block */
  text({ name, total, self, count }) {
    const share = percentText(total / Math.max(this.total, 1));
    return `${name}: ${durationText(total)} (${share}), self ${durationText(self)}, events: ${countText(count)}`;
  }

  /** @param {Block} block */
  say(block) {
    this.said.textContent = this.text(block);
  }

  /** @param {Block} block */
  press(block) {
    this.current = block;
    this.zoom(block);
  }

  /** @param {Block | null} whole */
  zoom(whole) {
    this.whole = whole;
    this.draw();
    this.focus();
  }

  focus() {
    /** @type {HTMLElement | null} */ (this.graph.querySelector(`[data-at="${this.current.at}"]`))?.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { blocks, current } = this;
    const beside = current.outer < 0 ? blocks.filter(({ outer }) => outer < 0).map(({ at }) => at) : blocks[current.outer].inner;
    const sorted = [...beside].sort((one, other) => blocks[one].left - blocks[other].left);
    const place = sorted.indexOf(current.at);
    /** @type {Record<string, number | undefined>} */
    const next = {
      ArrowUp: current.outer,
      ArrowDown: current.inner[0],
      ArrowLeft: sorted[place - 1],
      ArrowRight: sorted[place + 1],
    };
    if (event.key === "Escape" && this.whole) {
      this.zoom(null);
    } else if (event.key in next) {
      this.go(blocks[next[event.key] ?? -1]);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Block | undefined} block */
  go(block) {
    if (!block) {
      return;
    }
    this.current = block;
    if (!this.graph.querySelector(`[data-at="${block.at}"]`)) {
      this.whole = blockAround(this.blocks, block);
    }
    this.draw();
    this.focus();
  }
}

/**
 * Return the block that must fill the width so that `block` becomes wide enough to see.
 * @param {Block[]} blocks
 * @param {Block} block
 */
const blockAround = (blocks, block) => {
  const outer = block.outer < 0 ? null : blocks[block.outer];
  return outer && block.total / outer.total >= LEAST_FRACTION ? outer : block;
};
