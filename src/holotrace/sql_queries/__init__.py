"""SQL queries on a trace, answered by DuckDB."""
