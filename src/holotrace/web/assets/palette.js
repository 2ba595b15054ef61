// Colours shared with the figures; `make generate` writes this file from `holotrace.drawing`.

/**
 * Hue, saturation and lightness of each class of events; each name in the class gets a similar colour.
 * @type {Record<string, [number, number, number]>}
 */
export const EVENTS = {
  computation: [207, 61, 47],
  communication: [24, 72, 50],
  memory: [165, 59, 37],
  other: [309, 25, 58],
  operator: [215, 32, 52],
  annotation: [265, 35, 56],
  call: [190, 38, 40],
  python: [95, 26, 42],
  wait: [348, 50, 54],
};

/** @type {Record<string, string>} */
export const PATH = {
  "cpu operator": "#5d7eac",
  "host gap": "#c7b3e5",
  "data loading": "#7a4a2b",
  "launch delay": "#d9c15f",
  "kernel kernel delay": "#e6c9a8",
  computation: "#2f7fc1",
  communication: "#d96b24",
  copy: "#27967b",
  "synchronisation wait": "#9fb1c9",
  unknown: "#cdd1d6",
};

/** @type {Record<string, string>} */
export const FINDINGS = {
  idle: "#a9b3be",
  waiting: "#c44f67",
  advice: "#8a4fd0",
};

/** Colours that need dark text. */
export const PALE = ["#27967b", "#9fb1c9", "#a9b3be", "#c7b3e5", "#cdd1d6", "#d96b24", "#d9c15f", "#e6c9a8"];

/** Colours of the page in each scheme. */
export const SURFACES = {
  light: {"background": "#ffffff", "text": "#1f2933", "muted": "#5f6b7a", "grid": "#e4e8ee", "page": "#f3f5f8", "accent": "#1f6aa8", "bad": "#b3261e"},
  dark: {"background": "#171c23", "text": "#e5e9f0", "muted": "#9aa7b6", "grid": "#2c3440", "page": "#0f1318", "accent": "#6aaee6", "bad": "#ff8a80"},
};

export const DARK_INK = "#1f2933";
export const LIGHT_INK = "#ffffff";
