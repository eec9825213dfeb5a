"""The mathematics: pure functions over frozen values; numpy and scipy only."""
