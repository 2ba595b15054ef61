"""The timeline: the events of ranks, at the level of detail that the browser's pixels can show."""
