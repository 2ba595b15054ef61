"""Why ranks wait: what the rank waited for did instead, and what it cost."""
