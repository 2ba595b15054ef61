"""Estimates, with bounds, how far machines' clocks differ, from operations whose participants wait for each other."""
