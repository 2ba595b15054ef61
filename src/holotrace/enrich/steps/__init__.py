"""Training steps, and the step of each event."""
