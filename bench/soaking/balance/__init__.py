"""Soak test of the balance analytics: kills, a store with faults, lost executors."""
