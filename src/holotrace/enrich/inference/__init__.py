"""Finds steps of inference, by the names that engines give them or without names, and their requests and tokens."""
