"""The training steps, and to which one an event belongs."""
