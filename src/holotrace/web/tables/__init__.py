"""Tables of any length: the browser requests only the rows in view."""
