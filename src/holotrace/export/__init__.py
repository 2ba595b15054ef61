"""Write results and traces in the formats of other tools."""
