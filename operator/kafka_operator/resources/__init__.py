"""The three resources as frozen values, read from and written to the API's JSON; no decision is made here."""
