"""Find paths through graphs of dependencies, and pass amounts along the edges of such graphs."""
