"""The report: one HTML file with the verdict, figures, tables and the health of the files; it needs no network."""
