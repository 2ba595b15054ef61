"""Compares the clocks of hosts by the calls that their ranks share."""
