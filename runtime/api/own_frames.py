"""The place in a user's code where an exception was raised: the frames of its traceback that are
not ours.

Decides what is left out: the frames of epochgate before the first of the user's. What the user's
code calls stays, be it of a library or of epochgate. Runs wherever user code is called. Frames
travel as the end of a reason, and are found there again.
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Final

from epochgate.runtime.api.cells import shown_name

FRAMES_MAX: Final = 8
_OURS: Final = "epochgate"
_WITHIN: Final = f"{_OURS}."
_FIRST: Final = '\n  File "'


def own_frames(error: BaseException | None) -> str:
    """The frames from the user's code on, innermost last, on indented lines of their own after a
    line end; those of its cause if it has none, as for a StopIteration in a coroutine, of which
    Python makes a RuntimeError; empty if there are none.
    """
    if error is None:
        return ""
    first = error.__traceback__
    while first is not None and _is_ours(first):
        first = first.tb_next
    if first is None:
        return own_frames(error.__cause__)
    frames = traceback.extract_tb(first)
    shown = frames[:1] + frames[1:][-(FRAMES_MAX - 1) :]
    told = "\n" + "".join(traceback.format_list(shown)).rstrip()
    for name in {frame.filename for frame in shown}:
        told = told.replace(f'{_FIRST}{name}"', f'{_FIRST}{shown_name(name)}"')
    return told


def split_frames(reason: str) -> tuple[str, str]:
    r"""Split a reason into its text, and the frames of `own_frames` behind it; empty where there
    are none.

    >>> split_frames("ValueError: no\n  File \"job.py\", line 7, in work")
    ('ValueError: no', '\n  File "job.py", line 7, in work')
    """
    said, first, rest = reason.partition(_FIRST)
    return said, first + rest


def _is_ours(step: TracebackType) -> bool:
    name = step.tb_frame.f_globals.get("__name__")
    return isinstance(name, str) and (name == _OURS or name.startswith(_WITHIN))
