"""Match the calls of all ranks (collectives, sends and receives), and compare the clocks of their hosts."""
