"""Lookups in the table of events that all rooms share."""
