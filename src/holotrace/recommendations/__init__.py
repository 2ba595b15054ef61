"""What to try first: rules applied to the results of analyses, with the numbers and events behind each recommendation."""
