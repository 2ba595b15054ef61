"""Predicts how long the step of a job would take if something were different."""
