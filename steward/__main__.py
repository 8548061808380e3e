"""Entry point of `python -m steward`."""

from steward.main import app

app()
