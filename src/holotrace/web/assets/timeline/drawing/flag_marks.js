// Draws flags: a line through the rows, and the name on the ruler.

import { SIZES } from "../view.js";

/** @typedef {import("../address/texts.js").Flag} Flag */
/** @typedef {import("./painter.js").Painter} Painter */

const MOST_LETTERS = 18;
const [HEIGHT, PADDING] = [15, 4];

/**
 * @param {Painter} painter
 * @param {Flag} flag
 */
const drawFlag = (painter, { name, time }) => {
  const { pen, theme, view } = painter;
  const x = Math.round(view.x(time));
  const text = name.length > MOST_LETTERS ? `${name.slice(0, MOST_LETTERS - 1)}…` : name;
  painter.fill(x, 0, 1, view.height, theme.flag);
  painter.fill(x, 1, pen.measureText(text).width + 2 * PADDING, HEIGHT, theme.flag);
  pen.fillStyle = theme.paper;
  pen.fillText(text, x + PADDING, 1 + HEIGHT / 2);
};

/**
 * @param {Painter} painter
 * @param {Flag[]} flags
 */
export const drawFlags = (painter, flags) => {
  const { view } = painter;
  const isVisible = (/** @type {Flag} */ { time }) => time >= view.start && time <= view.end;
  painter.within(SIZES.labels, 0, view.pixels, view.height, () => {
    flags.filter(isVisible).forEach((flag) => drawFlag(painter, flag));
  });
};
