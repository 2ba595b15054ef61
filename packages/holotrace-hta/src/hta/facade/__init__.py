"""The implementation behind HTA's import paths: results as pandas frames with HTA's columns, in microseconds."""
