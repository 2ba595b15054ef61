// TensorBoard calls `render` in the frame of the plugin's tab. `render` loads a page of holotrace into this frame. All
// addresses are relative, so the pages work under any path of TensorBoard. A key in TensorBoard's address selects the
// page, for example `?p.holotrace.view=timeline#holotrace`.
const PREFIX = "p.holotrace.";

const parameters = () => {
  try {
    return [...new URLSearchParams(window.parent.location.search)].filter(([key]) => key.startsWith(PREFIX));
  } catch {
    return []; // TensorBoard is embedded in a page of another site
  }
};

export function render() {
  const page = new URL("app/index.html", import.meta.url);
  page.search = new URLSearchParams(parameters().map(([key, value]) => [key.slice(PREFIX.length), value])).toString();
  window.location.replace(page);
}
