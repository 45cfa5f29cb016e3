"""The usual parts of a job, so that one needs no `Program` of one's own: source, map, sink, and
coordinators beside them.

`epochgate.pipeline` is where users find them, together with `Pipeline`, which runs them on Spark.
Names are imported when they are first used: a worker needs few of them.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
