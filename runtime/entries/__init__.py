"""Entries of a directory or an object store, each created once, by its number: what controls and
plans are kept as.
"""
