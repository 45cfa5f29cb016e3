"""Plays schedules of the closed systems around the query on the shells that run in production."""
