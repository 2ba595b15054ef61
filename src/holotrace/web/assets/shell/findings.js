// Writes the open finding into the address. When the page is loaded again, `pages/found.py` opens the same finding.

import { current, put, remember } from "./address.js";

const KEY = "finding";

/** @param {Event} event */
const onToggle = ({ target }) => {
  if (!(target instanceof HTMLDetailsElement) || !target.dataset.finding) {
    return;
  }
  const params = current();
  const { finding } = target.dataset;
  if (target.open) {
    closeOthers(target);
    put(params, KEY, finding);
  } else if (params.get(KEY) === finding) {
    put(params, KEY, "");
  } else {
    return;
  }
  remember(params);
};

/** @param {HTMLDetailsElement} shown */
const closeOthers = (shown) => {
  for (const other of document.querySelectorAll("details[data-finding][open]")) {
    if (other !== shown) {
      other.removeAttribute("open");
    }
  }
};

/** Keep the address up to date; toggle events do not bubble, so listen in the capture phase. */
export const followFindings = () => document.addEventListener("toggle", onToggle, true);
