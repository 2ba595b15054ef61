// TensorBoard calls this in the frame of the tab. The pages take the frame over, with relative addresses only, so that
// they work wherever TensorBoard itself is mounted. `?p.holotrace.view=timeline#holotrace` in TensorBoard's address opens a page.
const PREFIX = "p.holotrace.";

const asked = () => {
  try {
    return [...new URLSearchParams(window.parent.location.search)].filter(([key]) => key.startsWith(PREFIX));
  } catch {
    return []; // TensorBoard stands in a page of another site
  }
};

export function render() {
  const page = new URL("app/index.html", import.meta.url);
  page.search = new URLSearchParams(asked().map(([key, value]) => [key.slice(PREFIX.length), value])).toString();
  window.location.replace(page);
}
