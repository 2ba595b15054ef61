// Draws lines where the critical path continues in another row, and arrows from the selected event to related events.

/** @typedef {import("../../types.js").Place} Place */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Segment} Segment */
/** @typedef {import("./painter.js").Painter} Painter */

const MOST_JUMPS = 400;
const [LEAST_BEND, HEAD_LENGTH, HEAD_WIDTH] = [30, 7, 4];

/**
 * Draw a line wherever the critical path continues in another row, except next to merged segments, where the lines
 * would be too dense.
 * @param {Painter} painter
 */
export const drawJumps = (painter) => {
  const { state, view } = painter;
  for (const rank of state.shown.has("path") ? state.ranks : []) {
    const [start, end] = [view.start - rank.offset, view.end - rank.offset];
    const along = rank.path?.along.filter((part) => part.start + part.length >= start && part.start <= end) ?? [];
    if (along.length <= MOST_JUMPS) {
      /** @param {Segment} part */
      const isKnown = (part) => part.row >= 0 && part.count === 1;
      along.slice(1).forEach((part, at) => isKnown(part) && isKnown(along[at]) && drawJump(painter, rank, along[at], part));
    }
  }
};

/**
 * @param {Painter} painter
 * @param {Rank} rank
 * @param {Segment} from
 * @param {Segment} to
 */
const drawJump = (painter, rank, from, to) => {
  const { pen, theme, view } = painter;
  const [above, below] = [from, to].map(({ row, depth }) => painter.middle(rank.number, row, depth));
  if (above === undefined || below === undefined || above === below) {
    return;
  }
  pen.strokeStyle = theme.path;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(view.x(from.start + from.length + rank.offset), above);
  pen.lineTo(view.x(to.start + rank.offset), below);
  pen.stroke();
};

/**
 * Draw arrows between the selected event and its launch, the work that it launched, and its forward or backward
 * operators.
 * @param {Painter} painter
 */
export const drawArrows = (painter) => {
  const { links, ranks, selected } = painter.state;
  const rank = ranks.find(({ number }) => number === selected?.rank);
  for (const { relation, at } of links) {
    if (rank && selected?.at && relation !== "operator") {
      const isBackwards = relation === "launch" || relation === "forward";
      const [from, to] = isBackwards ? [at, selected.at] : [selected.at, at];
      drawArrow(painter, rank, [from, to], relation.endsWith("ward"));
    }
  }
};

/**
 * @param {Painter} painter
 * @param {Rank} rank
 * @param {[Place, Place]} ends
 * @param {boolean} isGradient
 */
const drawArrow = (painter, rank, ends, isGradient) => {
  const { pen, theme, view } = painter;
  const [fromY, toY] = ends.map(([row, depth]) => painter.middle(rank.number, row, depth));
  if (fromY === undefined || toY === undefined) {
    return;
  }
  const [fromX, toX] = ends.map((place) => view.x(place[2] + rank.offset));
  const bend = Math.max(LEAST_BEND, Math.abs(toX - fromX) / 3);
  pen.strokeStyle = isGradient ? theme.gradient : theme.launch;
  pen.fillStyle = pen.strokeStyle;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  pen.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(toX, toY);
  pen.lineTo(toX - HEAD_LENGTH, toY - HEAD_WIDTH);
  pen.lineTo(toX - HEAD_LENGTH, toY + HEAD_WIDTH);
  pen.fill();
};
