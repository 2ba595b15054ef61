// Reads and writes the query string of the page; `session/selection.py` is the counterpart on the server.

const PER_TABLE = /^(q|by|top)\./;

/**
 * Write [0, 1, 2, 7] as "0-2,7".
 * @param {(number | string)[]} numbers
 */
export const rangesOf = (numbers) => {
  const sorted = numbers.map(Number).sort((one, other) => one - other);
  /** @type {[number, number][]} */
  const runs = [];
  for (const number of sorted) {
    const last = runs.at(-1);
    if (last && number === last[1] + 1) {
      last[1] = number;
    } else {
      runs.push([number, number]);
    }
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
};

/**
 * Read "0-3,7" as [0, 1, 2, 3, 7].
 * @param {string} text
 */
export const numbersOf = (text) =>
  text.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });

/**
 * Set a key, or remove it if its value is empty.
 * @param {URLSearchParams} params
 * @param {string} key
 * @param {string | null | undefined} value
 */
export const put = (params, key, value) => (value ? params.set(key, value) : params.delete(key));

/**
 * Remove from `params` the keys of table options, and the keys in `others`.
 * @param {URLSearchParams} params
 * @param {string[]} others
 */
export const forget = (params, others) => {
  for (const key of [...params.keys()].filter((name) => PER_TABLE.test(name) || others.includes(name))) {
    params.delete(key);
  }
};

/** @param {URLSearchParams} params */
export const searchOf = (params) =>
  `?${params.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%7E", "~")}`;

export const current = () => new URLSearchParams(window.location.search);

/**
 * Show the parameters in the browser's address without requesting the page again.
 * @param {URLSearchParams} params
 */
export const remember = (params) => window.history.replaceState(window.history.state, "", searchOf(params));
