"""Modules of `hta.common` that scripts written for Holistic Trace Analysis import."""
