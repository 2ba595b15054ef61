"""Memory timeline: the question, its computation, tables and figure."""
