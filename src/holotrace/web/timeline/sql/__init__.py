"""SQL queries on the timeline: the rows of the result, and their places on the timeline."""
