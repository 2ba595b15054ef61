"""Rules about several ranks: waiting for each other, and moving data."""
