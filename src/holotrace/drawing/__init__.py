"""What the figures share: theme, short names, bars, and plotly's script."""
