"""Command-line options, one dataclass for each group."""
