"""Write results and traces in other tools' formats; existing files are replaced only on request."""
