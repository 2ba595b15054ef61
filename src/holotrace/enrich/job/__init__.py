"""Computes facts about all ranks of a job."""
