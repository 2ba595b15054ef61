"""Facts about one rank that several analyses share; functions of a RankTrace."""
