"""Tests that take minutes more than the others and run only when named: `make e2e ARGS=e2e/longer`."""
