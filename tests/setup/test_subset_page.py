"""docs/subset.md lists each construct outside the checked subset, with the text of its refusal."""

from __future__ import annotations

from pathlib import Path

from epochgate.fsm.subset.constructs import CALLS, CONSTRUCTS

PAGE = Path(__file__).parents[2] / "docs" / "subset.md"


def rows() -> list[str]:
    refused = dict.fromkeys(CONSTRUCTS.values())
    refused |= dict.fromkeys((f"`{name}(...)`", instead) for name, instead in CALLS.items())
    return [f"| {name} | {instead} |" for name, instead in refused]


def test_the_page_lists_what_is_refused_and_what_to_write_instead() -> None:
    shown = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert shown[shown.index("| not allowed | write instead |") + 1 :] == rows()
