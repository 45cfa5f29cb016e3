"""Lowers closed systems to functions over packed words, for several targets with the same
results.
"""
