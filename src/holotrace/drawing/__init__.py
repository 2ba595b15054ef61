"""Shared parts of figures: theme, short names, bars, and plotly's script."""
