"""Computes the cost of a call from its recorded inputs: floating-point operations, bytes moved, and precision."""
