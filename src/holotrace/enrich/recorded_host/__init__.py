"""The host as a file records it: the nesting of its calls, and the nodes of its trees."""
