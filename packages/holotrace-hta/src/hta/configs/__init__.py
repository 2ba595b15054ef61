"""Modules of `hta.configs` that scripts written for Holistic Trace Analysis import."""
