"""Finds how the host calls in the trace file nest; other packages add the calls from CUDA graph captures."""
