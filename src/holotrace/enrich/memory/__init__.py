"""Reads memory events, and the blocks that they allocate and free."""
