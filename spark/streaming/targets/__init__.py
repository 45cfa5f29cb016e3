"""The targets of streaming queries and DataFrames, one module for each kind of table.

Each leaves the rules of its commit to the target of the sink of the same kind, which a resident job
has, too. Libraries are imported when a target is made.
"""
