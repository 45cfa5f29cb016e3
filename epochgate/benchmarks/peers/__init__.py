"""The same files loaded by other tools and by `epochgate ingest`, in turn: `make
bench-ingest-peers`.
"""
