"""Estimates how far the clocks of machines differ, with error bounds, from operations whose participants wait for each
other."""
