// Loads the ranks of the timeline one after the other, then shows the view that the address requests.

import { recorded } from "../data/clocks.js";
import { ask } from "../data/server.js";
import { inOrder } from "../rows/rank_order.js";
import { RankClocks } from "./rank_clocks.js";

/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").RankAnswer} RankAnswer */
/** @typedef {import("../../types.js").Span} Span */
/** @typedef {import("../timeline.js").Timeline} Timeline */

const MOMENT_NS = 500_000;

export class Opening {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.clocks = new RankClocks(timeline);
  }

  /** Load the ranks, and draw each rank as soon as it arrives. */
  async open() {
    const { address, among, run } = this.timeline;
    this.timeline.say("opening");
    const known = await ask("ranks", { run, ranks: among });
    const wanted = address.rank;
    const ranks = wanted === undefined || known.ranks.includes(wanted) ? known.ranks : [wanted, ...known.ranks];
    for (const number of ranks) {
      await this.openRank(number);
      if (this.timeline.isClosed) {
        return;
      }
    }
    this.sayCount(known.count);
    await this.clocks.compare();
    if (this.timeline.attributes.panel === "flags") {
      await this.timeline.flags.showList(true);
    }
    address.isFollowed = true;
    await this.goToRequested();
    this.timeline.loadMap();
    this.timeline.overlays.loadFindings(); // after the ranks, because comparing ranks takes longer than drawing them
    if (known.count > 2) {
      await this.showFirst();
      this.sayCount(known.count);
      this.timeline.loadMap(); // for the ranks that `showFirst` has added
    }
  }

  /** @param {number} number */
  async openRank(number) {
    const { address, run, selection } = this.timeline;
    /** @param {string} text */
    const waiting = (text) => this.timeline.say(`rank ${number}: ${text}`);
    const answer = await ask("rows", { run, rank: number }, { waiting });
    if (this.timeline.isClosed) {
      return;
    }
    this.add(number, answer);
    if (number === address.rank && address.event !== undefined) {
      await (address.window ? selection.select(number, address.event) : selection.goTo(number, address.event));
    }
  }

  /** @param {number} count */
  sayCount(count) {
    const shown = this.timeline.ranks.length;
    if (!shown) {
      this.timeline.say("this run does not contain the chosen ranks; choose others above");
      return;
    }
    this.timeline.say(shown < count ? `${shown} of ${count} ranks shown; choose others above` : "");
  }

  /**
   * Return a rank; load it if it is not shown yet.
   * @param {number} number
   */
  async loaded(number) {
    if (!this.timeline.rankOf(number)) {
      this.add(number, await ask("rows", { run: this.timeline.run, rank: number }));
      await this.clocks.compare();
    }
    return /** @type {Rank} */ (this.timeline.rankOf(number));
  }

  /** Show the late rank and a typical rank first, after the server has compared all ranks. */
  async showFirst() {
    const { timeline } = this;
    try {
      /** @type {{ rank: number, reason: string }[]} */
      const order = await ask("order", { run: timeline.run, ranks: timeline.among });
      for (const { rank, reason } of timeline.isClosed ? [] : order) {
        Object.assign(await this.loaded(rank), { reason });
      }
      if (order.length && !timeline.isClosed) {
        this.putFirst(order.map(({ rank }) => rank));
        timeline.overlays.loadFindings();
      }
    } catch (error) {
      timeline.sayError(error);
    }
  }

  /** @param {number[]} order */
  putFirst(order) {
    const { timeline } = this;
    const { view } = timeline;
    const isAtTop = view.scroll === 0 && !timeline.top && !timeline.selected;
    timeline.ranks = inOrder(timeline.ranks, order);
    timeline.arranged();
    if (isAtTop) {
      view.scroll = 0;
      timeline.changed();
    }
  }

  /**
   * @param {number} number
   * @param {RankAnswer} answer
   */
  add(number, { origin, length, steps, rows }) {
    const { devices, flags, ranks, view } = this.timeline;
    if (!ranks.length) {
      this.timeline.base = BigInt(origin);
      flags.open();
    }
    const clock = recorded(BigInt(origin), this.timeline.base);
    const shown = rows
      .map((row, at) => ({ ...row, at }))
      .filter(({ device }) => !devices || device === null || devices.has(device));
    /** @type {Rank} */
    const rank = {
      number,
      origin: BigInt(origin),
      clock,
      offset: clock.recorded,
      length,
      steps,
      rows: shown,
      lanes: new Map(),
      counters: [],
      path: null,
    };
    ranks.push(rank);
    this.clocks.measure(rank);
    view.isOpen = true;
    this.timeline.arranged();
    if (ranks.length === 1) {
      this.timeline.loader.first(rank);
    }
  }

  /** Show the span, the time or the search in the address; `openRank` has already shown an event. */
  async goToRequested() {
    const { address, attributes, movement, selection, view } = this.timeline;
    if (attributes.event) {
      return;
    }
    const [start, end] = address.times;
    const rank = this.timeline.rankOf(address.rank ?? -1);
    if (start !== undefined && rank && !this.timeline.top) {
      view.scroll = view.items.find((item) => item.rank === rank)?.top ?? view.scroll;
    }
    if (start < end) {
      await this.goToSpan({ start, end, rows: null });
    } else if (start !== undefined) {
      movement.showTimes(start - MOMENT_NS, start + MOMENT_NS);
    } else if (attributes.find) {
      this.timeline.toolbar.searchBox.value = attributes.find;
      const longest = await this.timeline.search.find(attributes.find);
      if (longest) {
        await selection.goTo(longest.rank, longest.event);
      }
    }
  }

  /** @param {Span} span */
  async goToSpan(span) {
    const { address, movement, selection, shown } = this.timeline;
    selection.setSpan(span);
    this.timeline.pathSpan = shown.has("path") ? { ...span } : null;
    if (!address.window) {
      movement.showTimes(span.start, span.end);
    }
    await selection.describeSpan();
  }
}
