"""A job of the usual parts: what its user imports.

Names are imported when they are first used; only `Pipeline.start` and `run` need pyspark.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
