"""Units, statistics and reasons of results, as in HTA, and the display of figures."""
