"""A trace as HTA's scripts read and edit it: frames, symbols and args."""
