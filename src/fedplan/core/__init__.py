"""Values: fleet, objective, limits, problem, setting, plan, records, learning rate."""
