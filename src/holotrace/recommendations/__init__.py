"""What to try first: rules over the results of analyses, each finding with the numbers and events behind it."""
