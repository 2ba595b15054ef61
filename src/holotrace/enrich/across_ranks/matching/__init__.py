"""Which calls of different ranks are the same operation."""
