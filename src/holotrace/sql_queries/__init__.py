"""SQL queries on a trace, which DuckDB answers."""
