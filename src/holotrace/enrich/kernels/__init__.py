"""The kind of work of each kernel, and how well the kernel uses its device."""
