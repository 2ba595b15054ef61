"""Facts about the ranks of a job together."""
