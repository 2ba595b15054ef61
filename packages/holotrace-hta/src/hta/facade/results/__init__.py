"""HTA's units, statistics and reasons in results, and how figures are shown."""
