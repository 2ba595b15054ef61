"""Steps of inference: how engines name them, how they are found without names, and what they work on."""
