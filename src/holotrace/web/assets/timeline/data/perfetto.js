// Opens a trace in Perfetto: in the copy on the server, if one is installed there, or else at ui.perfetto.dev, which
// receives the trace in a message: https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui

import { ask } from "./server.js";

export const PERFETTO = "https://ui.perfetto.dev";
const PATIENCE_MS = 60_000;

/**
 * Wait until Perfetto can receive a trace: send PING repeatedly until Perfetto answers with PONG.
 * @param {Window} opened
 * @returns {Promise<void>}
 */
const ready = (opened) =>
  new Promise((resolve, reject) => {
    const began = Date.now();
    /** @param {() => void} then */
    const finish = (then) => {
      window.clearInterval(timer);
      window.removeEventListener("message", answered);
      then();
    };
    /** @param {MessageEvent} event */
    const answered = (event) => {
      if (event.origin === PERFETTO && event.data === "PONG") {
        finish(resolve);
      }
    };
    const timer = window.setInterval(() => {
      if (opened.closed || Date.now() - began > PATIENCE_MS) {
        finish(() => reject(new Error(`Perfetto did not answer; check that this browser can open ${PERFETTO}`)));
      } else {
        opened.postMessage("PING", PERFETTO);
      }
    }, 100);
    window.addEventListener("message", answered);
  });

/**
 * @param {URL} file
 * @param {string} title
 * @param {Window} opened
 */
const send = async (file, title, opened) => {
  const response = await fetch(file);
  if (!response.ok) {
    throw new Error((await response.json()).error);
  }
  const buffer = await response.arrayBuffer();
  await ready(opened);
  opened.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
};

/**
 * Open the file of a single rank, or a file in which the server has merged several ranks on one clock. The window opens
 * before the file is ready, because browsers open a window only in response to a click.
 * @param {{ run: string, ranks: number[], isHere: boolean, say: (text: string) => void }} options
 */
export const openPerfetto = async ({ run, ranks, isHere, say }) => {
  const which = ranks.length === 1 ? ["rank", String(ranks[0])] : ["ranks", ranks.join(",")];
  const file = new URL(`timeline/file?${new URLSearchParams([["run", run], which])}`, window.location.href);
  const opened = window.open(isHere ? "about:blank" : PERFETTO);
  if (!opened) {
    say("the browser blocked the window for Perfetto; allow pop-ups for this page");
    return;
  }
  try {
    if (ranks.length > 1) {
      say(`putting ${ranks.length} ranks on one clock`);
      await ask("merged", { run, ranks: ranks.join(",") });
    }
    if (isHere) {
      const page = new URL("timeline/perfetto/index.html", window.location.href);
      opened.location.href = `${page}#!/?mode=embedded&url=${encodeURIComponent(file.href)}`;
    } else {
      say("sending the trace to Perfetto");
      await send(file, ranks.length === 1 ? `rank ${ranks[0]}` : `${ranks.length} ranks`, opened);
    }
    say("");
  } catch (error) {
    say(/** @type {Error} */ (error).message);
  }
};
