"""What each case costs: the time of the rank that it claims, and replays of the step with its cause removed."""
