"""Navigation in a recording: from event to event, and with the map above the timeline."""
