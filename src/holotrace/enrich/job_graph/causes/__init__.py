"""Why ranks wait: what the late rank did in the meantime, and how much waiting it caused."""
