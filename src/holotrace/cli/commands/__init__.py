"""Commands that do not belong to one question of the catalogue; each file is named after its command."""
