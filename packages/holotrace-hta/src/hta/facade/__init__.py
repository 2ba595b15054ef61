"""What the methods of `TraceAnalysis` return: results as pandas frames with HTA's columns, in microseconds."""
