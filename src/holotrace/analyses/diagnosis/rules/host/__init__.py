"""Rules about hosts that keep devices waiting."""
