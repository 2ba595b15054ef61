"""A job as a plain table of operations, and how long its steps take if operations take more or less time."""
