"""Numbers only: arrays in, arrays out. Nothing here knows what a trace is."""
