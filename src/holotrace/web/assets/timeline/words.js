"use strict";

// How times, amounts and pieces of the page are written. Each file here puts its part into `htaTimeline`; none needs
// another before the page is there, so their order does not matter.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  const unitOf = (ns) => (ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"]);

  const duration = (ns) => {
    const [unit, name] = unitOf(Math.abs(ns));
    return `${Number((ns / unit).toPrecision(4))} ${name}`;
  };

  // A moment with as many digits as tell it from the next, `step` later.
  const moment = (ns, step) => {
    const [unit, name] = unitOf(Math.max(Math.abs(ns), step));
    return `${(ns / unit).toFixed(clamp(Math.ceil(Math.log10(unit / step)), 0, 9))} ${name}`;
  };

  const SCALES = {
    "": [1000, ["", "k", "M", "G", "T"]],
    bytes: [1024, ["B", "KiB", "MiB", "GiB", "TiB"]],
    "bytes/s": [1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
  };

  const percent = (fraction) => `${(100 * fraction).toFixed(fraction < 0.1 ? 1 : 0)} %`;

  const amount = (value, unit) => {
    if (unit === "fraction") {
      return percent(value);
    }
    const [base, names] = SCALES[unit] || SCALES[""];
    const power = clamp(Math.floor(Math.log(Math.max(Math.abs(value), 1)) / Math.log(base)), 0, names.length - 1);
    return `${Number((value / base ** power).toPrecision(3))} ${names[power]}`.trim();
  };

  const count = (number) => number.toLocaleString("en");

  // Names are only ever set as text, never as markup.
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    made.className = className || "";
    if (text !== undefined) {
      made.textContent = text;
    }
    return made;
  };

  const button = (text, title, action) => {
    const made = element("button", "", text);
    made.type = "button";
    made.title = title;
    made.addEventListener("click", action);
    return made;
  };

  // Read "0-3,7" as [0, 1, 2, 3, 7].
  const numbers = (text) =>
    text.split(",").flatMap((part) => {
      const [first, last] = part.split("-").map(Number);
      return Array.from({ length: (last ?? first) - first + 1 }, (_, at) => first + at);
    });

  timeline.words = { amount, button, clamp, count, duration, element, moment, numbers, percent };
})();
