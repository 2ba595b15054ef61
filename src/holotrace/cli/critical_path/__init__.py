"""`holotrace critical-path` also writes overlays and graphs, and predicts what changes would save."""
