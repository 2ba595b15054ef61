"""Units and statistics of results as in HTA, the reasons why results are empty, and the display of figures."""
