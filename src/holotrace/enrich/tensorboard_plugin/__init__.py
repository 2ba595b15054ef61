"""Reproduces events, trees, steps and communication of PyTorch's TensorBoard plugin (`compat="torch_tb_profiler"`)."""
