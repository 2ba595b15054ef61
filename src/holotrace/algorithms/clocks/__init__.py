"""Estimates how far the clocks of machines differ, and bounds the error, from operations in which participants wait."""
