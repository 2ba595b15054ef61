"""Facts about one rank that the rules use."""
