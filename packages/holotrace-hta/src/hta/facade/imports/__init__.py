"""Modules that are imported only when a script uses them."""
