"""Traces for tests: built by hand, simulated as a whole job with known truth, or drawn by Hypothesis.

`holotrace.testing.strategies` needs Hypothesis, so import it by its full name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
