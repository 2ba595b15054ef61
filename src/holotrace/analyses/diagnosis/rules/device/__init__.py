"""Rules about kernels, streams and device memory."""
