"""The operators of docs/savepoints.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from epochgate.runtime import OperatorContext, unpack_parts

PAGE = Path(__file__).parents[3] / "docs" / "savepoints.md"
CONTEXT = OperatorContext("op", 0, 0, 1, "run", lambda event: None)


def shown(name: str) -> Any:
    """The class of this name, as the page has it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    [block] = [block for block in blocks if f"class {name}(" in block]
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102  # it is our own page
    return names[name]


def test_the_totals_of_older_code_become_those_of_now() -> None:
    totals = shown("Totals")()
    assert totals.state_version == 2
    totals.open(CONTEXT, totals.upgrade_state(1, b"41"))
    assert totals.totals == {"all": 41}
    again = shown("Totals")()
    again.open(CONTEXT, totals.snapshot(7))
    assert again.totals == {"all": 41}


def test_what_was_seen_comes_back_and_equal_buckets_have_equal_bytes() -> None:
    seen = shown("Seen")()
    seen.open(CONTEXT, None)
    assert seen.buckets == {}
    seen.buckets = {"a": {b"2", b"1"}, "b": {b"3"}}
    state = seen.snapshot(7)
    assert unpack_parts(state) == {"a": b"1 2", "b": b"3"}
    again = shown("Seen")()
    again.open(CONTEXT, state)
    assert again.buckets == seen.buckets
    assert again.snapshot(8) == state
