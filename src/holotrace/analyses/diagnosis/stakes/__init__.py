"""Compute the cost of each case: the time that it explains, and the time saved in a replay without its cause."""
