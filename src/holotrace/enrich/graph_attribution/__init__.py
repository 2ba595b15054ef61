"""Finds the operators, modules and shapes of kernels that a CUDA or HIP graph replays."""
