// TensorBoard calls `render` in the frame of its tab. The pages replace the frame, with relative addresses only, so they
// work under any path of TensorBoard. `?p.holotrace.view=timeline#holotrace` in TensorBoard's address opens a page.
const PREFIX = "p.holotrace.";

const parameters = () => {
  try {
    return [...new URLSearchParams(window.parent.location.search)].filter(([key]) => key.startsWith(PREFIX));
  } catch {
    return []; // a page of another site embeds TensorBoard
  }
};

export function render() {
  const page = new URL("app/index.html", import.meta.url);
  page.search = new URLSearchParams(parameters().map(([key, value]) => [key.slice(PREFIX.length), value])).toString();
  window.location.replace(page);
}
