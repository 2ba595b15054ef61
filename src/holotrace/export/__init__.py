"""Results and traces in the formats of other tools. Nothing here overwrites a file unless asked."""
