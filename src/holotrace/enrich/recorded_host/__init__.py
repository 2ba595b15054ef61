"""Finds how the host calls in the file nest; calls from CUDA graph captures are added elsewhere."""
