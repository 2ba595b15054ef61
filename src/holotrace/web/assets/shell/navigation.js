// Dims the pages without data in the navigation; `pages/without_data.py` names them.

const NOTE = "no data in this recording";

/** Mark the links of pages without data. The navigation is made anew for each page, so the marks are set anew too. */
export const dimPagesWithoutData = () => {
  const pages = (document.getElementById("without-data")?.dataset.pages ?? "").split(" ");
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("#nav a"))) {
    const note = pages.includes(new URLSearchParams(link.search).get("view") ?? "") ? NOTE : "";
    if (link.title !== note) {
      link.title = note;
    }
  }
};
