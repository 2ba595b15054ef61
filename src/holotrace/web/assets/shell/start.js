// The entry module of every page: provides what Dash looks up in the window, then lets Dash draw the page.

import { callbacks } from "./callbacks.js";
import { listenForKeys } from "./keys.js";
import { Later, loadWhatIsShown } from "./later.js";
import { followTensorboard } from "./scheme.js";

window.holotrace = { Later };
window.dash_clientside.holotrace = callbacks;
window.dash_ag_grid = { AgGrid: () => null }; // Dash checks that it exists long before a table is mounted
loadWhatIsShown();
listenForKeys();
followTensorboard();
new DashRenderer();
