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

/**
 * Return black or white, whichever has more contrast with a fill `hsl(H S% L%)`; the contrast is always at least 4.5:1
 * (WCAG 2.2, 1.4.3).
 * @param {string} colour
 */
export const contrastingInk = (colour) => {
  const [hue, saturation, lightness] = (colour.match(/[\d.]+/g) ?? ["0", "0", "0"]).map(Number);
  const reach = (saturation / 100) * Math.min(lightness / 100, 1 - lightness / 100);
  /** @param {number} place */
  const channel = (place) => {
    const at = (place + hue / 30) % 12;
    const value = lightness / 100 - reach * Math.max(-1, Math.min(at - 3, 9 - at, 1));
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(4);
  return luminance > 0.179 ? "#000" : "#fff";
};

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
    flag: either("#a3005c", "#ff8ac2"),
    path: either("#d6202c", "#ff5c62"),
  };
};
