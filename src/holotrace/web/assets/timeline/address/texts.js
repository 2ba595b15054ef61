// The visible time range, the item at the upper edge and the flags, as texts in the address.
//
//   window=START-END           visible times in ns, on the axis
//   top=RANK.ITEM.PIXELS       item at the upper edge of the rows, and how many of its pixels are above the edge
//   flags=TIME:NAME,TIME:NAME  flags; names are encoded, so they contain no colons or commas

/** @typedef {{ start: number, end: number }} Times in ns on the axis, counted from the first rank's origin */
/** @typedef {{ key: string, away: number }} Anchor an item of the view, and its distance below the upper edge in pixels */
/** @typedef {{ time: number, name: string }} Flag a name, and a time in ns on the axis since the first rank's origin */

export const LONGEST_NAME = 40;
/** The server reads addresses of up to 8,192 characters; this leaves room for the selection. */
export const LONGEST_FLAGS = 4_000;

/**
 * @param {Times} times
 * @param {bigint} base the first rank's origin
 */
export const windowText = ({ start, end }, base) => `${base + BigInt(Math.round(start))}-${base + BigInt(Math.round(end))}`;

/**
 * @param {string} text
 * @param {bigint} base
 * @returns {Times | null}
 */
export const windowOf = (text, base) => {
  const [, first, last] = text.match(/^(-?\d{1,19})-(-?\d{1,19})$/) ?? [];
  const [start, end] = first === undefined ? [0, 0] : [first, last].map((time) => Number(BigInt(time) - base));
  return start < end ? { start, end } : null;
};

/** @param {Anchor} anchor */
export const topText = ({ key, away }) => `${key}.${Math.round(-away)}`;

/**
 * @param {string} text
 * @returns {Anchor | null}
 */
export const topOf = (text) => {
  const [, key, above] = text.match(/^(\d{1,9}\.[a-z]+\d{0,9})\.(-?\d{1,6})$/) ?? [];
  return key === undefined ? null : { key, away: -Number(above) };
};

/**
 * @param {Flag[]} flags
 * @param {bigint} base
 */
export const flagsText = (flags, base) =>
  flags.map(({ time, name }) => `${base + BigInt(Math.round(time))}:${encodeURIComponent(name)}`).join(",");

/** @param {string} text */
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // for example, in an address typed by hand
  }
};

/**
 * @param {string} text
 * @param {bigint} base
 * @returns {Flag[]}
 */
export const flagsOf = (text, base) =>
  text.split(",").flatMap((part) => {
    const [, time, name] = part.match(/^(-?\d{1,19}):(.*)$/s) ?? [];
    return time === undefined ? [] : [{ time: Number(BigInt(time) - base), name: decoded(name).slice(0, LONGEST_NAME) }];
  });
