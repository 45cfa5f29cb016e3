"""Designs that do not run: a reference model with known counts, Flink's protocol, two earlier
designs, and broken variants.
"""
