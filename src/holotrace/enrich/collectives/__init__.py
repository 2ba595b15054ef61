"""Reads the communication of a rank from its trace."""
