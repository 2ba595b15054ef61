// Units and their sizes, the largest first; `make generate` writes this file from `holotrace.units`.

/** @type {[number, string][]} */
export const DURATIONS = [[1000000000, "s"], [1000000, "ms"], [1000, "µs"], [1, "ns"]];

/** @type {[number, string][]} */
export const BANDWIDTHS = [[1000000000, "GB/s"], [1000000, "MB/s"], [1000, "kB/s"], [1, "B/s"]];

/** @type {[number, string][]} */
export const SIZES = [[1099511627776, "TiB"], [1073741824, "GiB"], [1048576, "MiB"], [1024, "KiB"], [1, "B"]];
