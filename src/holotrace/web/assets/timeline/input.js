"use strict";

// Mouse and keys. As in Perfetto and chrome://tracing: W and S zoom, A and D go left and right, with the wheel Ctrl or Alt
// zooms and shift goes left and right.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const GLIDES = new Set(["w", "a", "s", "d"]);
  const ARROWS = { arrowleft: "a", arrowright: "d" };
  const ZOOM_A_SECOND = 3;
  const PAN_A_SECOND = 0.9;
  const CLICK_PX = 4;
  const ROWS_A_KEY = 3;

  class Input {
    constructor(canvas, view, actions) {
      this.canvas = canvas;
      this.view = view;
      this.actions = actions;
      this.held = new Set();
      this.pointer = null;
      this.drag = null;
      const listen = (name, options) => canvas.addEventListener(name, (event) => view.isOpen && this[name](event), options);
      ["pointerdown", "pointermove", "pointerup", "pointerleave", "dblclick"].forEach((name) => listen(name));
      listen("wheel", { passive: false });
    }

    wheel(event) {
      const { offsetX: x, deltaX, deltaY } = event;
      if (event.ctrlKey || event.metaKey || event.altKey) {
        this.view.zoom(Math.exp(timeline.words.clamp(deltaY, -200, 200) * 0.003), x);
      } else if (event.shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) {
        this.view.pan((deltaX || deltaY) / this.view.pixels);
      } else if (this.view.canScroll) {
        this.view.scroll += deltaY;
      } else {
        return; // then the page scrolls
      }
      event.preventDefault();
      this.actions.moved();
    }

    pointerdown(event) {
      if (event.button !== 0) {
        return;
      }
      this.canvas.focus({ preventScroll: true });
      this.canvas.setPointerCapture(event.pointerId);
      const { offsetX: x, offsetY: y } = event;
      const isSpan = (event.shiftKey || y < timeline.SIZES.ruler) && x > timeline.SIZES.labels;
      const { start, end, scroll } = this.view;
      this.drag = { x, y, start, end, scroll, isSpan, isClick: true };
      this.actions.hover(null);
    }

    pointermove(event) {
      const { offsetX: x, offsetY: y } = event;
      this.pointer = { x, y };
      if (!this.drag) {
        this.canvas.style.cursor = y < timeline.SIZES.ruler ? "col-resize" : "default";
        this.actions.hover(this.pointer);
        return;
      }
      this.drag.isClick = this.drag.isClick && Math.hypot(x - this.drag.x, y - this.drag.y) < CLICK_PX;
      if (this.drag.isClick) {
        return;
      }
      if (this.drag.isSpan) {
        this.actions.span(this.spanTo(x, y));
        return;
      }
      const by = ((this.drag.x - x) / this.view.pixels) * (this.drag.end - this.drag.start);
      this.view.scroll = this.drag.scroll + this.drag.y - y;
      this.view.move(this.drag.start + by, this.drag.end + by);
      this.actions.moved();
    }

    // From where the drag began; on the ruler over all rows, else over those that it touches.
    spanTo(x, y) {
      const { labels, ruler } = timeline.SIZES;
      const [one, other] = [this.drag.x, x].map((each) => this.view.timeAt(timeline.words.clamp(each, labels, this.view.width)));
      const rows = this.drag.y < ruler ? null : this.view.rowsBetween(this.drag.y, y);
      return { start: Math.floor(Math.min(one, other)), end: Math.ceil(Math.max(one, other)), rows };
    }

    pointerup(event) {
      const { drag } = this;
      this.drag = null;
      if (drag && drag.isClick) {
        this.actions.click(event.offsetX, event.offsetY);
      } else if (drag && drag.isSpan) {
        this.actions.spanDone();
      }
    }

    pointerleave() {
      this.pointer = null;
      this.actions.hover(null);
    }

    dblclick() {
      this.actions.fitSelected();
    }

    // Say whether the key means something here.
    key(event) {
      const key = event.key.toLowerCase();
      const isHere = event.target === this.canvas;
      const glide = GLIDES.has(key) ? key : isHere && ARROWS[key];
      const does = { f: "fitSelected", 0: "fitAll", m: "markSelected", "/": "toSearch", escape: "unselect" }[key];
      if (glide) {
        this.hold(glide);
      } else if (isHere && (key === "arrowup" || key === "arrowdown")) {
        this.view.scroll += (key === "arrowup" ? -1 : 1) * ROWS_A_KEY * timeline.SIZES.lane;
        this.actions.moved();
      } else {
        return Boolean(does) && this.actions[does]() !== false;
      }
      return true;
    }

    release(event) {
      const key = event.key.toLowerCase();
      this.held.delete(ARROWS[key] || key);
    }

    // While a key is held, each frame goes on a little.
    hold(key) {
      const wasIdle = this.held.size === 0;
      this.held.add(key);
      if (wasIdle && this.view.isOpen) {
        this.last = performance.now() - 16;
        window.requestAnimationFrame(() => this.glide());
      }
    }

    glide() {
      if (!this.held.size) {
        return;
      }
      const now = performance.now();
      const passed = Math.min(now - this.last, 60) / 1000;
      this.last = now;
      const { labels } = timeline.SIZES;
      const x = this.pointer && this.pointer.x > labels ? this.pointer.x : labels + this.view.pixels / 2;
      const speed = (one, other) => (this.held.has(one) ? 1 : 0) - (this.held.has(other) ? 1 : 0);
      this.view.zoom(Math.exp(-speed("w", "s") * ZOOM_A_SECOND * passed), x);
      this.view.pan(speed("d", "a") * PAN_A_SECOND * passed);
      this.actions.moved();
      window.requestAnimationFrame(() => this.glide());
    }
  }

  timeline.Input = Input;
})();
