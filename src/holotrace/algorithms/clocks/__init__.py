"""Estimates how far machines' clocks differ, with bounds; uses operations whose participants wait for each other."""
