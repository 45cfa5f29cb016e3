"""Certification of sinks: every call and every write of a sink, struck by every failure.

Decides which schedules a sink has to pass (`certifying`), what is promised (`claims`), and what a
person reads (`reporting`). Plays them on the real runtime in one process, without Spark (`run`);
what the sink writes is seen through its file calls (`files`) and its clients (`clients`).
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
