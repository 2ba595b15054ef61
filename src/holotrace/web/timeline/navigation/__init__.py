"""Navigation in a recording: steps from event to event, and the map above the timeline."""
