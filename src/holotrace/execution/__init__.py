"""Where work on ranks runs; knows nothing of traces."""
