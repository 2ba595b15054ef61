"""Code that figures share: theme, short names, bars, and plotly's script."""
