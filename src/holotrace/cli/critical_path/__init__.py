"""`holotrace critical-path` also writes overlays and graphs, and predicts how much time changes would save."""
