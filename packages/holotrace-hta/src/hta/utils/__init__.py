"""Modules of `hta.utils`, at HTA's import paths."""
