"""The machines at work in Spark: the session, the driver's service, tasks, sources and sinks.

Names are imported when they are first used, because tasks import from here too and need little.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
"""The names of `epochgate.spark`, and where they are defined."""
