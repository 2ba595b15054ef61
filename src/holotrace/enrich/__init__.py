"""Functions that compute facts from traces; each fact is used by several analyses."""
