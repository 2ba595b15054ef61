"""Facts about all ranks of a job."""
