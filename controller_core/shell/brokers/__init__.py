"""Towards the brokers: requests in order, each broker on its own, and what their answers mean."""
