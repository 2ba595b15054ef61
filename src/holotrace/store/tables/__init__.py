"""Files of tables and their checksums."""
