"""Estimates and bounds of the clocks of machines, from operations in which some participants wait for others."""
