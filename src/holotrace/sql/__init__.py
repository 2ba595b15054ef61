"""Questions in SQL about a trace, answered by DuckDB."""
