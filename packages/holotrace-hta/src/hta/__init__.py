"""The interface of Meta's Holistic Trace Analysis (HTA), implemented with holotrace.

    from hta.trace_analysis import TraceAnalysis

New code should use `holotrace` itself: its results are exact, typed, and documented column by column.
"""
