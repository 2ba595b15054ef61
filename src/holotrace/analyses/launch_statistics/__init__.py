"""Launch statistics: the question, its computation, tables and figure."""
