// Dims the pages without data in the navigation; `pages/without_data.py` names them.

const NOTE = "no data in this recording";

let dimmed = "";

/** Mark the links of pages without data; do nothing if neither the links nor the names have changed. */
export const dimPagesWithoutData = () => {
  const pages = document.getElementById("without-data")?.dataset.pages ?? "";
  const nav = document.getElementById("nav");
  const state = `${nav?.childElementCount} ${window.location.search} ${pages}`;
  if (state === dimmed) {
    return;
  }
  dimmed = state;
  for (const link of nav?.querySelectorAll("a") ?? []) {
    const name = new URLSearchParams(link.search).get("view") ?? "";
    link.title = pages.split(" ").includes(name) ? NOTE : "";
  }
};
