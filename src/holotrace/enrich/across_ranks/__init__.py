"""Matches the calls of all ranks (collectives, sends and receives), and compares the clocks of their hosts."""
