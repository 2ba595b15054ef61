// Fits the texts of a figure to its width: cuts the names above bars (their hover texts stay complete), wraps titles
// inside the figure, and labels fewer categories on a crowded axis. The HTML report also contains this file.

/** @typedef {import("../types.js").PlotlyFigure} PlotlyFigure */
/** @typedef {NonNullable<PlotlyFigure["layout"]>} Layout */
/** @typedef {NonNullable<Layout["annotations"]>} Notes */
/** @typedef {NonNullable<Layout["xaxis"]>} Axis */

const [LETTER_PX, BESIDE_PX, LABELS_PX, BESIDE_TITLES_PX] = [7.2, 60, 190, 75];
const SIZE_OF_NAMES = 12;
const TICK_PX = 15; // of a name that is rotated by 90 degrees
const PATIENCE_MS = 150;

/** @type {WeakMap<HTMLElement, { layout: Layout, width: number }>} */
const drawn = new WeakMap();

/** @type {ResizeObserver | undefined} */
let sizes;

/**
 * Return the width of a letter, as a multiple of the average width; narrow letters are treated as average.
 * @param {string} letter
 */
const widthOf = (letter) => (/[mMwW@%]/u.test(letter) ? 1.6 : /[A-Z0-9<>…]|&[gl]t;/u.test(letter) ? 1.15 : 1);

/**
 * Cut a text to a width, given in letters of average width; an entity such as `&lt;` is one letter.
 * @param {string} text
 * @param {number} length
 */
const cut = (text, length) => {
  const letters = text.match(/&[#a-z0-9]+;|./gsu) ?? [];
  let width = 0;
  const ends = letters.map((letter) => (width += widthOf(letter)));
  return width <= length ? text : `${letters.filter((_, at) => (ends[at] ?? 0) <= length - 1).join("")}…`;
};

/**
 * Wrap a text between words, into lines of at most `length` letters.
 * @param {string} text
 * @param {number} length
 */
export const wrapped = (text, length) => {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    lines.splice(-1, 1, ...(longer.length <= length ? [longer] : [lines.at(-1) ?? "", word]));
  }
  return lines.filter(Boolean).join("<br>");
};

/**
 * Return how much narrower than the figure a title must be, because of the axis labels beside the plot.
 * @param {{ ticktext?: unknown[], categoryarray?: unknown[] }} axis
 */
const besideLabels = ({ ticktext, categoryarray = [] }) =>
  BESIDE_TITLES_PX + LETTER_PX * Math.max(0, ...(ticktext ?? categoryarray).map((name) => String(name).length));

/**
 * @param {Layout} layout
 * @param {number} width
 * @returns {Notes | undefined}
 */
export const fittedNotes = ({ annotations, yaxis, yaxis2 }, width) => {
  const beside = yaxis?.showticklabels === false && !yaxis2 ? BESIDE_PX : LABELS_PX;
  const length = Math.floor((width - beside) / LETTER_PX);
  const besideTitles = yaxis2 && yaxis2.showticklabels !== false ? besideLabels(yaxis2) : BESIDE_TITLES_PX;
  return annotations?.map((note) => {
    const { xanchor, yref, font } = note;
    const text = note.whole ?? note.text ?? ""; // when Dash draws the figure again, it passes the fitted texts
    if (xanchor !== "left") {
      return note;
    }
    const letterPx = (LETTER_PX * (font?.size ?? SIZE_OF_NAMES)) / SIZE_OF_NAMES;
    const room = Math.floor((width - besideTitles) / letterPx);
    const fitting = yref === "paper" ? { text: wrapped(text, room), align: "left" } : { text: cut(text, length) };
    return { ...note, ...fitting, whole: text };
  });
};

/**
 * Label fewer categories if the labels would touch: every second category or, if necessary, every fourth, and so on.
 * @param {Axis} axis
 * @param {number} width
 * @returns {Axis}
 */
export const fittedAxis = (axis, width) => {
  const whole = axis.whole ?? axis;
  const { ticktext, tickvals = [], title, type } = whole;
  const [, every = "1"] = /every (\d+)(?:nd|th) is named/u.exec(title?.text ?? "") ?? [];
  const fit = Math.max(1, (width - LABELS_PX) / TICK_PX); // a figure is narrower than its labels while a page is laid out
  let by = 1;
  while (type === "category" && tickvals.length / by > fit) {
    by *= 2;
  }
  const nth = Number(every) * by;
  const name = title?.text?.replace(/ ?\(?every .* is named\)?/u, "") ?? "";
  const text = `${name} (every ${nth}${nth % 10 === 2 && nth % 100 !== 12 ? "nd" : "th"} is named)`.trim();
  /** @param {unknown[]} [values] */
  const thinned = (values) => values?.filter((_, at) => at % by === 0);
  return by === 1 ? whole : { ...whole, whole, tickvals: thinned(tickvals), ticktext: thinned(ticktext), title: { ...title, text } };
};

/**
 * Return the figure with texts that fit the element, and remember the full texts for other widths.
 * @param {HTMLElement} element
 * @param {PlotlyFigure} figure
 */
export const fitted = (element, figure) => {
  const { layout } = figure;
  const width = element.clientWidth;
  if (!layout) {
    return figure;
  }
  drawn.set(element, { layout, width });
  sizes?.observe(element); // even without a width; the texts are fitted when the element gets one
  return width ? { ...figure, layout: { ...layout, ...fittedParts(layout, width) } } : figure;
};

/**
 * @param {Layout} layout
 * @param {number} width
 */
const fittedParts = (layout, width) => ({
  ...(layout.annotations && { annotations: fittedNotes(layout, width) }),
  ...(layout.xaxis && { xaxis: fittedAxis(layout.xaxis, width) }),
  ...(layout.xaxis2 && { xaxis2: fittedAxis(layout.xaxis2, width) }),
});

/**
 * @param {string} name
 * @param {Axis} [axis]
 */
const ticksOf = (name, { ticktext, tickvals, title } = {}) =>
  ticktext && { [`${name}.ticktext`]: ticktext, [`${name}.tickvals`]: tickvals, [`${name}.title.text`]: title?.text };

/**
 * Change a figure after plotly.js has resized it. If the legend needs fewer lines at the new size, plotly.js positions
 * the legend before it enlarges the bars, so the legend covers part of the bars. Setting the legend's position again
 * moves the legend off the bars.
 * @param {HTMLElement} plot
 * @param {object} changes
 * @param {Layout["legend"]} legend
 */
const changed = async (plot, changes, legend) => {
  const { Plots, relayout } = /** @type {import("../types.js").Plotly} */ (window.Plotly);
  await Plots.resize(plot);
  await relayout(plot, { ...changes, ...(legend?.y !== undefined && { "legend.y": legend.y }) });
};

const fitAgain = () => {
  const plots = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".js-plotly-plot")]);
  for (const plot of plots) {
    const known = drawn.get(plot);
    const width = plot.clientWidth;
    if (known && width && width !== known.width && plot.checkVisibility()) { // a closed section of the report has a width too
      drawn.set(plot, { ...known, width });
      const { annotations, xaxis, xaxis2 } = fittedParts(known.layout, width);
      const changes = { ...(annotations && { annotations }), ...ticksOf("xaxis", xaxis), ...ticksOf("xaxis2", xaxis2) };
      changed(plot, changes, known.layout.legend).catch(() => drawn.set(plot, known)); // hidden meanwhile
    }
  }
};

/** Fit the texts of a figure again whenever its width has changed, even if it has since returned to the old width. */
export const followWidth = () => {
  let soon = 0;
  sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const plot = /** @type {HTMLElement} */ (target);
      const known = drawn.get(plot);
      if (known && plot.clientWidth && plot.clientWidth !== known.width) {
        drawn.set(plot, { ...known, width: 0 });
      }
    }
    window.clearTimeout(soon);
    soon = window.setTimeout(fitAgain, PATIENCE_MS);
  });
};
