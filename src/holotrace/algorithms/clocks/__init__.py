"""Estimates and bounds how far clocks of machines differ, from operations whose participants wait for each other."""
