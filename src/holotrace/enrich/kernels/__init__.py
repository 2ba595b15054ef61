"""Classifies kernels, and measures how well each kernel uses its device."""
