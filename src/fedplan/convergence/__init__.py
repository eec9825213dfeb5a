"""How many rounds a setting needs."""
