"""Reasons to doubt a trace: what the profiler lost, added or timed wrongly."""
