"""Reads memory events, and derives the blocks that were allocated and released."""
