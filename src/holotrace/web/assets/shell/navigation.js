// Dims the links to pages without data; `pages/without_data.py` lists these pages.

const NOTE = "no data in this recording";

/** Mark the links to pages without data. Each page creates the navigation again, so the links must be marked again. */
export const dimPagesWithoutData = () => {
  const pages = (document.getElementById("without-data")?.dataset.pages ?? "").split(" ");
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("#nav a"))) {
    const note = pages.includes(new URLSearchParams(link.search).get("view") ?? "") ? NOTE : "";
    if (link.title !== note) {
      link.title = note;
    }
  }
};
