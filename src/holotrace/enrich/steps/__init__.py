"""Finds training steps, and the step of each event."""
