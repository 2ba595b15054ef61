// The order of the ranks on the timeline.

/** @typedef {import("../../types.js").Rank} Rank */

/**
 * Return the ranks in a new order: first the ranks with these numbers, in the order of `numbers`, then all others.
 * @param {Rank[]} ranks
 * @param {number[]} numbers
 */
export const inOrder = (ranks, numbers) => {
  /** @param {Rank} rank */
  const placeOf = ({ number }) => (numbers.includes(number) ? numbers.indexOf(number) : numbers.length);
  return [...ranks].sort((one, other) => placeOf(one) - placeOf(other));
};
