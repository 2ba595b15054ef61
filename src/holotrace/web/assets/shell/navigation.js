// Dims the pages without data in the navigation; `pages/without_data.py` names them.

const NOTE = "no data in this recording";

export const dimPagesWithoutData = () => {
  const names = (document.getElementById("without-data")?.dataset.pages ?? "").split(" ");
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("#nav a"))) {
    const name = new URLSearchParams(link.search).get("view") ?? "";
    const title = names.includes(name) ? NOTE : "";
    if (link.title !== title) {
      link.title = title;
    }
  }
};
