"""Federated logistic regression on digits."""
