"""Navigation in a recording: from event to event, and on the map above the timeline."""
