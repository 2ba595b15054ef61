"""Facts about a rank that several analyses share, computed by functions of a RankTrace."""
