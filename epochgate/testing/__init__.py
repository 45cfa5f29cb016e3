"""What tests of jobs, coordinators and machines are written with.

Names are imported when they are first used: each needs the extras that it needs, and no others.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
