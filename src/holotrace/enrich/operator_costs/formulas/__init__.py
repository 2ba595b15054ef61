"""FLOPs and bytes of operators, one family per file."""
