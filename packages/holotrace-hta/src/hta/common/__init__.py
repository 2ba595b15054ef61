"""Modules of `hta.common`, at HTA's import paths."""
