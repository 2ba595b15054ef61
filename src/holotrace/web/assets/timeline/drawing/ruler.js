// Draws the ruler with times, training steps and the length of the selected span, and the grid lines below it.

import { clamp, durationText, momentText } from "../../units.js";

/** @typedef {import("./painter.js").Painter} Painter */

const TICK_PX = 110;
const [STEPS_TOP, STEPS_HEIGHT] = [18, 14];

/**
 * Return times about `TICK_PX` apart, with their labels.
 * @param {Painter} painter
 */
const ticks = ({ view }) => {
  const rough = (view.length / view.pixels) * TICK_PX;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5].map((times) => times * power).find((distance) => distance >= rough) ?? power * 10;
  const zero = view.whole.start;
  /** @type {[number, string][]} */
  const found = [];
  for (let at = Math.ceil((view.start - zero) / step) * step; at + zero <= view.end; at += step) {
    found.push([at + zero, momentText(at, step)]);
  }
  return found;
};

/**
 * Draw a vertical line at each labelled time, and a line between the labels and the rows.
 * @param {Painter} painter
 */
export const drawGrid = (painter) => {
  const { sizes, theme, view } = painter;
  painter.fill(sizes.labels - 1, sizes.ruler, 1, view.height, theme.faint); // below the rows, because titles of ranks cross it
  ticks(painter).forEach(([time]) => painter.fill(Math.round(view.x(time)), sizes.ruler, 1, view.height, theme.faint));
};

/** @param {Painter} painter */
export const drawRuler = (painter) => {
  const { pen, theme, view } = painter;
  const { labels, ruler } = painter.sizes;
  painter.fill(0, 0, view.width, ruler, theme.paper);
  pen.fillStyle = theme.muted;
  pen.fillText(durationText(view.length), 10, 10);
  painter.within(labels, 0, view.pixels, ruler, () => {
    pen.fillStyle = theme.muted;
    ticks(painter).forEach(([time, label]) => pen.fillText(label, view.x(time) + 3, 10));
    drawSteps(painter);
    drawSpanLength(painter);
  });
  painter.fill(0, ruler - 1, view.width, 1, theme.faint);
  painter.fill(labels - 1, 0, 1, ruler, theme.faint);
};

/**
 * Draw the training steps of the first rank.
 * @param {Painter} painter
 */
const drawSteps = (painter) => {
  const { pen, sizes, state, theme, view } = painter;
  const [rank] = state.ranks;
  (rank?.steps ?? []).forEach(([start, end, number], at) => {
    const [left, right] = [view.x(start + rank.offset), view.x(end + rank.offset)];
    if (right >= sizes.labels && left <= view.width && right - left >= 2) {
      painter.fill(left, STEPS_TOP, right - left, STEPS_HEIGHT, theme.steps[at % 2]);
      pen.fillStyle = theme.ink;
      painter.text(`step ${number}`, left, right - left, STEPS_TOP + STEPS_HEIGHT / 2);
    }
  });
};

/** @param {Painter} painter */
const drawSpanLength = (painter) => {
  const { pen, sizes, state, theme, view } = painter;
  const { span } = state;
  if (!span) {
    return;
  }
  const [left, right] = [view.x(span.start), view.x(span.end)];
  const text = durationText(span.end - span.start);
  const width = pen.measureText(text).width + 8;
  const at = clamp((left + right - width) / 2, sizes.labels, view.width - width);
  painter.fill(left, 0, right - left, sizes.ruler, theme.span);
  painter.fill(at, 2, width, 15, theme.ink);
  pen.fillStyle = theme.paper;
  pen.fillText(text, at + 4, 10);
};
