// Switches the overlays on and off: critical path, findings and counters.

/** @typedef {import("./timeline.js").Timeline} Timeline */

export class Overlays {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
  }

  /** @param {string} name */
  toggle(name) {
    const { flags, panel, ranks, shown, span } = this.timeline;
    if (name === "flags") {
      flags.showList(panel.shown !== "flags");
      return;
    }
    const isOn = !shown.has(name);
    shown[isOn ? "add" : "delete"](name);
    if (name === "path") {
      this.timeline.pathSpan = isOn && span ? { ...span } : null;
      ranks.forEach((rank) => {
        rank.path = null;
      });
    }
    if (name === "findings") {
      this.listFindings(isOn);
    }
    this.timeline.toolbar.show(this.timeline);
    this.timeline.address.write();
    this.timeline.arranged();
  }

  pathOfSpan() {
    this.timeline.shown.delete("path");
    this.toggle("path");
  }

  /** @param {boolean} isOn */
  listFindings(isOn) {
    this.timeline.selection.select(null);
    if (isOn) {
      this.timeline.panel.findings();
      this.loadFindings();
    }
  }

  loadFindings() {
    const { loader, ranks, shown } = this.timeline;
    if (shown.has("findings")) {
      ranks.forEach((rank) => loader.findings(rank));
    }
  }

  /** Show findings when they arrive, unless the visitor has selected something meanwhile. */
  findingsKnown() {
    const { panel, selected, shown, span } = this.timeline;
    if (!selected && !span && shown.has("findings")) {
      panel.findings();
    }
    this.timeline.draw();
  }
}
