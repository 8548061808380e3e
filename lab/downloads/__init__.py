"""What the lab downloads or builds once, and keeps in the cache of the user."""
