"""The web server of `holotrace serve`: `waitress`, behind a guard that checks each request."""
