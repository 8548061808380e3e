"""Processes of the lab: how they start, get ports and folders, are awaited and end."""
