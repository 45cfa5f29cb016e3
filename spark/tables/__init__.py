"""The common ground of the sinks into tables of Parquet files: types, staged files, and their
writer.

Leaves to each sink the table's log or catalog, and with it every rule of the commit. Imports no
pyspark, and no library of a table format.
"""
