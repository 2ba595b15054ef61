"""Functions of a RankTrace that compute facts for several analyses."""
