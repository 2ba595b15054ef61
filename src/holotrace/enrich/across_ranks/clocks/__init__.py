"""Compares the clocks of hosts, using calls in which ranks of several hosts take part."""
