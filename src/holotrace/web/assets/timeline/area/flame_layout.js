// Computes the positions of the blocks in a flame graph, also after the visitor has enlarged a block to the full width.

/** @typedef {import("../../types.js").FlamesAnswer} FlamesAnswer */
/**
 * @typedef {object} Block
 * @property {number} at
 * @property {number} outer -1 for outermost blocks
 * @property {number} depth
 * @property {number[]} inner the widest first
 * @property {number} left in ns, from the left end of the whole graph
 * @property {number} total
 * @property {number} self
 * @property {number} count
 * @property {string} name
 * @property {string} colourClass
 * @property {[number, number]} longest rank and event
 */

/**
 * Return a block of the flame graph for each call path in the server's answer. Inner blocks are side by side, from the
 * left end of their outer block, with the widest block first.
 * @param {FlamesAnswer} answer
 * @returns {Block[]}
 */
export const blocksOf = ({ names, paths }) => {
  /** @type {Block[]} */
  const blocks = paths.map(([outer, name, total, self, count, rank, event], at) => {
    const [text, colourClass] = names[name];
    return { at, outer, depth: 0, inner: [], left: 0, total, self, count, name: text, colourClass, longest: [rank, event] };
  });
  const outermost = blocks.filter((block) => block.outer < 0);
  blocks.filter((block) => block.outer >= 0).forEach((block) => blocks[block.outer].inner.push(block.at));
  /**
   * @param {Block[]} level
   * @param {number} left
   * @param {number} depth
   */
  const put = (level, left, depth) => {
    let next = left;
    for (const block of level.sort((one, other) => other.total - one.total || one.at - other.at)) {
      Object.assign(block, { left: next, depth });
      next += block.total;
    }
  };
  put(outermost, 0, 0);
  for (const block of blocks) {
    const inner = block.inner.map((at) => blocks[at]);
    put(inner, block.left, block.depth + 1);
    block.inner = inner.map(({ at }) => at);
  }
  return blocks;
};

/**
 * Return the blocks that are visible while the graph is zoomed to the block `whole`; null means the complete graph. The
 * left end and width of each block are returned as fractions of the full width.
 * @param {Block[]} blocks
 * @param {Block | null} whole
 * @param {number} total
 * @param {number} least narrower blocks are left out
 */
export const visibleBlocks = (blocks, whole, total, least) => {
  const [from, length] = whole ? [whole.left, whole.total] : [0, total];
  return blocks.flatMap((block) => {
    const left = Math.max((block.left - from) / length, 0);
    const right = Math.min((block.left + block.total - from) / length, 1);
    return right - left >= least ? [{ block, left, width: right - left }] : [];
  });
};
