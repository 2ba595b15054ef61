"""Explains why ranks wait: what the late rank did in the meantime, and how much waiting this caused."""
