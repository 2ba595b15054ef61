"""Commands that do not answer a question in the catalogue; each file is named after its command."""
