// The entry module of every page: defines the global names that Dash needs, then starts Dash, which draws the page.

import { callbacks } from "./callbacks.js";
import { followWidth } from "./figure_names.js";
import { followFindings } from "./findings.js";
import { listenForKeys } from "./keys.js";
import { Later, loadWhatIsShown } from "./later.js";
import { followTensorboard } from "./scheme.js";
import { Navigation } from "./navigation.js";
import { showSidebar } from "./sidebar.js";

window.holotrace = { Later, Navigation };
window.dash_clientside.holotrace = callbacks;
window.dash_ag_grid = { AgGrid: () => null }; // a stand-in: Dash requires this name long before a table needs it
showSidebar();
loadWhatIsShown();
listenForKeys();
followTensorboard();
followFindings();
followWidth();
new DashRenderer();
