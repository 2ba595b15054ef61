"""The data behind the pages: the runs below the served folders, the open traces, and the results made so far."""
