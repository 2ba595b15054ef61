"""The cost of cases: claims on the time of a rank, and replays of the step without a cause."""
