"""Finds reasons to doubt a trace: events that the profiler lost, added or timed wrongly."""
