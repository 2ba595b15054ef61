"""The report: one HTML file with the verdict, figures, tables and file health; it works offline."""
