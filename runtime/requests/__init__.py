"""Requests of other processes to a job that runs, by files beside its checkpoints."""
