"""What takes minutes more than the rest, and is run by its name: `make e2e ARGS=e2e/longer`."""
