"""Several ranks in one file, on one clock."""
