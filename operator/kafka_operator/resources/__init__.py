"""Custom resources as immutable values: parsing and serialisation only."""
