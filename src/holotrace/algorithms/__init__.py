"""Arrays and texts in, arrays and texts out. Nothing here knows what a trace is."""
