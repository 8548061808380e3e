"""Runs of the tests: their division, reports of failures, second runs, and lists of what they show."""
