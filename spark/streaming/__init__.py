"""Structured Streaming and DataFrames: exactly once per query and batch, by Spark's own API.

Names are imported when they are first used, because tasks import from here too and need little.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
