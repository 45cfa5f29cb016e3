"""The values that the columns of a target hold: the rules of all formats and of PostgreSQL's types.

Sinks convert by these rules and refuse what they refuse; `page` makes the tables of the guide of
the same rules. Imports pyarrow, and no sink.
"""
