"""The timeline: the events of ranks at the level of detail that the pixels of the browser can show."""
