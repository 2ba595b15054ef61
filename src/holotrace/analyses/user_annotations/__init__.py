"""User annotations: the question, its computation, tables and figure."""
