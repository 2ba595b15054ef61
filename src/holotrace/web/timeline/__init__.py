"""The timeline: the events of ranks, with as much detail as the browser's pixels can show."""
