"""The main job once, on real parts, as a timeline that a person can read: `make demo-kafka`."""
