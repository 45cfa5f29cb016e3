"""The shells that make the machines act: the coordinator and operator APIs, the job master, stores,
transports.

Names are imported when they are first used: a worker needs few of them.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
