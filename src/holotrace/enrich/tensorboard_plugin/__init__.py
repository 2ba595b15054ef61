"""Events, trees, steps and communication as PyTorch's TensorBoard plugin saw them; only for `compat="torch_tb_profiler"`."""
