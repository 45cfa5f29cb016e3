"""The machines that exist: the protocol of coordinators, gateways, checkpoints, attempts and
commits.

Names are imported when they are first used: a worker needs one machine of them.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
