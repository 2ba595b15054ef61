"""The calls of all ranks, matched: collectives, sends and receives, and the clocks of their hosts."""
