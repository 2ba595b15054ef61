"""Modules of `hta.utils` that scripts written for Holistic Trace Analysis import."""
