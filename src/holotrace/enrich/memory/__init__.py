"""Memory events and the blocks they describe."""
