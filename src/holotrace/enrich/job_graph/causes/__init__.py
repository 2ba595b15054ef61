"""Why ranks wait: what the rank that they waited for did in the meantime, and what that cost."""
