"""Compute the cost of each case: the time that it claims, and the time saved in a replay of the step without the cause."""
