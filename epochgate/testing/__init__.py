"""The tools with which tests of jobs, coordinators and machines are written.

Names are imported when they are first used: each needs the extras that it needs, and no others.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
