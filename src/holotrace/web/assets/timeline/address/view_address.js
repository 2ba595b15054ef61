// Keeps the address up to date, so a copied link shows the same view of the timeline; `docs/how-to/serve.md` lists the
// parameters.

import * as address from "../../shell/address.js";
import { toAxis } from "../data/clocks.js";
import { flagsText, topText, windowOf, windowText } from "./texts.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */

const OVERLAYS = ["path", "findings", "counters"];
const SETTLED_MS = 300; // browsers refuse more than about 200 changes of the address in half a minute

export class ViewAddress {
  /** @param {Timeline} state */
  constructor(state) {
    this.state = state;
    this.timer = 0;
    this.isFollowed = false; // true once the timeline shows the view that the address requested
    const { at = "", event = "" } = state.attributes;
    const [rank, index] = (event.match(/^\d+:\d+$/) ?? at.match(/^\d+(?=:)/))?.[0].split(":").map(Number) ?? [];
    this.rank = rank;
    this.event = index;
    this.shown = new Set((state.attributes.show ?? "").split(",").filter((name) => OVERLAYS.includes(name)));
  }

  close() {
    window.clearTimeout(this.timer);
  }

  /** The requested time range; null if the address has none. */
  get window() {
    return windowOf(this.state.attributes.window ?? "", this.state.base);
  }

  /** The times of `at` (none, one or two) on the axis; with a prefix `RANK:`, `at` has times on this rank's clock. */
  get times() {
    const [, rank, ...texts] = this.state.attributes.at?.match(/^(?:(\d{1,9}):)?(\d{1,19})(?:-(\d{1,19}))?$/) ?? [];
    const of = this.state.rankOf(Number(rank));
    const times = texts.filter((text) => text !== undefined).map(BigInt);
    return times.map((time) =>
      of ? Math.round(toAxis(of.clock, Number(time - of.origin))) : Number(time - this.state.base),
    );
  }

  /** Write the address after the view has not moved for `SETTLED_MS`. */
  later() {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.write(), SETTLED_MS);
  }

  write() {
    const { base, flags, isClosed, panel, rows, selected, shown, span, view } = this.state;
    if (isClosed || !this.isFollowed) {
      return;
    }
    const params = address.current();
    params.set("run", params.get("run") || this.state.run); // without `run`, a link shows the first run of the server
    const isWhole = view.start === view.whole.start && view.end === view.whole.end;
    const isMoved = view.wasMoved || this.window !== null;
    const top = this.state.top ?? (view.scroll > 0 ? view.anchor() : null);
    const values = {
      event: selected && `${selected.rank}:${selected.event}`,
      at: span && !span.rows ? `${base + BigInt(span.start)}-${base + BigInt(span.end)}` : "",
      show: OVERLAYS.filter((name) => shown.has(name)).join(","),
      window: isMoved && !isWhole ? windowText(view, base) : "",
      top: top ? topText(top) : "",
      flags: flagsText(flags.all, base),
      rows: String(rows),
      sql: this.state.query,
      panel: panel.shown === "flags" ? "flags" : "",
    };
    Object.entries(values).forEach(([key, value]) => address.put(params, key, value));
    if (selected || span) {
      params.delete("find");
    }
    address.remember(params);
  }
}
