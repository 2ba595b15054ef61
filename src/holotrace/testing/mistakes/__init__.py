"""Simulated training jobs on GPUs, each with one mistake that makes it slow, and the same job without the mistake."""
