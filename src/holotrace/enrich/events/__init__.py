"""Lookups in the table of events."""
