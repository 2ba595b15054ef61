"""From files to tables: finding the files of a job and reading each format."""
