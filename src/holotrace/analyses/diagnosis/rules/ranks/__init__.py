"""Rules about several ranks: how they wait for each other and exchange data."""
