"""A folder for each question about traces: question, computation, tables, figure. None imports another."""
