"""SQL queries on the timeline: their rows, and where on the timeline each row is."""
