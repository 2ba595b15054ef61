"""Steps of inference: how engines name them, how to find them without names, and their requests and tokens."""
