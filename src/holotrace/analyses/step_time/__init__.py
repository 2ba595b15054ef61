"""Step time: the question, its computation, tables and figure."""
