"""The commands that no question of the catalogue provides: each file has one, under its own name."""
