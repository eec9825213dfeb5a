"""How many rounds."""
