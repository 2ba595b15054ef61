"""Summaries of a selected area of the timeline: a span of time on some rows of some ranks."""
