"""Represents a job as a plain table of operations, to replay its steps with other operation times."""
