"""What to choose: the certified search, the paper's method, regret, the frontier."""
