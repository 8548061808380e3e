"""Connections of the broker to the control plane of its cluster. `port` is their interface."""
