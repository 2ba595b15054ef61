"""SQL queries on the timeline: the rows of the result, and where each row is on the timeline."""
