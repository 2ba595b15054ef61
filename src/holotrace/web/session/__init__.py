"""The data that pages show: the runs below the served folders, the open traces, and the results computed so far."""
