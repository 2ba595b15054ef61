"""From files to tables: find the files of a job, and read every format."""
