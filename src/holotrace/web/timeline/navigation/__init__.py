"""Ways through a recording: from event to event, and the map of the whole."""
