"""Calls on the host as a file records them: their nesting and their trees."""
