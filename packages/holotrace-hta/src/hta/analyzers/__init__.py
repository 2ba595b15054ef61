"""Where scripts written for Holistic Trace Analysis import single functions and constants of its analyses from."""
