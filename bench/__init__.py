"""Benchmarks of Steward and its peers, and the soak test; not shipped, and not part of the tests."""
