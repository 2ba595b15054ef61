"""Joins the graphs of all ranks at the calls in which ranks wait for each other."""
