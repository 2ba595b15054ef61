"""Holistic Trace Analysis: where the GPU time of a PyTorch job went.

    import holotrace

    trace = holotrace.open_trace("traces/")
    holotrace.temporal_breakdown(trace).per_device

Names are imported when first used, so `import holotrace` is quick and loads no libraries. `__init__.pyi` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
