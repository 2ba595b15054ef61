"""Rules about a host that keeps its devices waiting."""
