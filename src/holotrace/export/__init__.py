"""Write results and traces in the formats of other tools; existing files are replaced only on request."""
