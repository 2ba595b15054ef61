"""The building blocks of pages: what a page is, its components, and the slow parts that appear when they are ready."""
