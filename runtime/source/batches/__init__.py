"""Batches of a streaming source: which splits each has, planned once and kept in a store."""
