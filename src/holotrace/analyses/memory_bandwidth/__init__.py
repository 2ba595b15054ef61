"""Memory bandwidth: the question, its computation, tables and figure."""
