"""Kills processes of an ingestion while it runs, and counts its rows afterwards: for the
demonstration, for `epochgate ingest --chaos`, and for the soak of the repository.
"""
