"""Reads how calls on the host nest, from the events in the file alone."""
