"""Answers questions about a whole job: its summary, and the health of its files."""
