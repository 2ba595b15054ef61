"use strict";

// Hands a trace to Perfetto: the one of this machine, where it is installed, else ui.perfetto.dev, by message.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const PERFETTO = "https://ui.perfetto.dev";
  const PATIENCE_MS = 60_000;

  // Perfetto answers PING with PONG once it is ready.
  const greeted = (opened) =>
    new Promise((resolve, reject) => {
      const began = Date.now();
      const finish = (then) => {
        window.clearInterval(timer);
        window.removeEventListener("message", answered);
        then();
      };
      const answered = (event) => {
        if (event.origin === PERFETTO && event.data === "PONG") {
          finish(resolve);
        }
      };
      const timer = window.setInterval(() => {
        if (opened.closed || Date.now() - began > PATIENCE_MS) {
          finish(() => reject(new Error("Perfetto did not answer")));
        } else {
          opened.postMessage("PING", PERFETTO);
        }
      }, 100);
      window.addEventListener("message", answered);
    });

  const handOver = async (file, title, opened) => {
    const response = await fetch(file);
    if (!response.ok) {
      throw new Error((await response.json()).error);
    }
    const buffer = await response.arrayBuffer();
    await greeted(opened);
    opened.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
  };

  // Opens the window at once: browsers allow that only in answer to a click.
  const openPerfetto = async ({ run, rank, isHere, say }) => {
    const file = new URL(`timeline/file?${new URLSearchParams({ run, rank })}`, window.location.href);
    if (isHere) {
      window.open(`timeline/perfetto/index.html#!/?mode=embedded&url=${encodeURIComponent(file.href)}`);
      return;
    }
    const opened = window.open(PERFETTO);
    if (!opened) {
      say("the browser kept the window of Perfetto from opening");
      return;
    }
    say("handing the trace to Perfetto");
    try {
      await handOver(file, `rank ${rank}`, opened);
      say("");
    } catch (error) {
      say(error.message);
    }
  };

  timeline.openPerfetto = openPerfetto;
  timeline.PERFETTO = PERFETTO;
})();
