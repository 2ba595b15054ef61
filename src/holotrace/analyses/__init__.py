"""One folder for each question about traces: its texts, computation, tables and figure; no folder imports another."""
