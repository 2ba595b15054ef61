// Colours of events by class and name, of the critical path, of findings, and of the page.

import { DARK_INK, EVENTS, FINDINGS, LIGHT_INK, PALE, PATH, SURFACES } from "../../palette.js";

export const classes = Object.keys(EVENTS);
export const findings = FINDINGS;
export const path = PATH;

/** @param {string} text */
const hashOf = (text) => {
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) {
    hash = (hash * 31 + text.charCodeAt(at)) | 0;
  }
  return hash >>> 0;
};

/**
 * @param {string} text
 * @param {string} kind
 */
export const ofEvent = (text, kind) => {
  const [hue, saturation, lightness] = EVENTS[kind] || EVENTS.other;
  const hash = hashOf(text);
  return `hsl(${hue + (hash % 25) - 12} ${saturation}% ${lightness + ((hash >> 5) % 9) - 4}%)`;
};

/** @param {string} kind */
export const ofClass = (kind) => {
  const [hue, saturation, lightness] = EVENTS[kind];
  return `hsl(${hue} ${saturation}% ${lightness}%)`;
};

/**
 * Return a text colour that is readable on a fill.
 * @param {string} colour
 */
export const inkOn = (colour) => (PALE.includes(colour) ? DARK_INK : LIGHT_INK);

/** Return the colours of the page in its current scheme. */
export const theme = () => {
  const isDark = document.documentElement.dataset.mantineColorScheme === "dark";
  const surface = SURFACES[isDark ? "dark" : "light"];
  /**
   * @template T
   * @param {T} light
   * @param {T} dark
   */
  const either = (light, dark) => (isDark ? dark : light);
  return {
    paper: surface.background,
    ink: surface.text,
    faint: surface.grid,
    muted: surface.muted,
    heading: either("#f1f4f8", "#222a35"),
    steps: [either("#e8e2f4", "#3a3350"), either("#dbe7f3", "#2b3a4d")],
    span: either("rgb(40 110 220 / 15%)", "rgb(120 170 255 / 22%)"),
    focus: either("rgb(138 79 208 / 12%)", "rgb(170 130 240 / 20%)"),
    highest: either("#bcd3ee", "#33507a"),
    mean: either("#5b94d0", "#5b8fd0"),
    launch: either("#b06a00", "#f0b64c"),
    gradient: either("#b03a8c", "#e07abf"),
    path: either("#d6202c", "#ff5c62"),
  };
};
