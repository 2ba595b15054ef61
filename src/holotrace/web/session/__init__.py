"""The data of the pages: the runs below the served folders, the open traces, and the results computed so far."""
