"""Clocks of machines, from operations in which some participants wait for others."""
