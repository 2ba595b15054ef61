"""The communication of a rank."""
