"""Critical path: the question, its computation, tables and figure."""
