"""`python -m steward`."""

from steward.main import app

app()
