"""Commands that do not belong to one question of the catalogue; each file holds the command of its name."""
