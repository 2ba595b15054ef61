"""Find the files of a job, and read them into tables."""
