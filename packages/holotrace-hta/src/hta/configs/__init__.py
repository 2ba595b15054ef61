"""Modules of `hta.configs`, at HTA's import paths."""
