"""What each case costs: its part of the rank's time, and replays of the step with the cause removed."""
