"""Commands that do not belong to a single question in the catalogue; each file is named after its command."""
