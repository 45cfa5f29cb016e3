"""The sink in docs/sinks.md shows every row once, whatever fails, and says what it promises to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import Sink, SinkStart
from epochgate.testing import SinkCase, certify_sink

GUIDE = Path(__file__).parents[3] / "docs" / "sinks.md"


def example() -> tuple[str, dict[str, Any]]:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "class JsonLines(Sink)" in block]
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, GUIDE.name, "exec", dont_inherit=True), names)  # noqa: S102  # the page's own code
    return code, names


def shown(target: Path) -> list[int]:
    files = sorted(target.glob("*.jsonl"))
    return [json.loads(line)["x"] for file in files for line in file.read_text().splitlines()]


class GuideCase(SinkCase):
    """The sink of the guide, as its reader sees it."""

    def sink(self, place: Path) -> Sink:
        sink: Sink = example()[1]["JsonLines"](str(place / "out"))
        return sink

    def rows(self, place: Path) -> Iterator[Any]:
        for file in sorted(place.glob("out/*.jsonl")):
            yield from map(json.loads, file.read_text().splitlines())

    def staged(self, place: Path) -> list[str]:
        return [path.name for path in place.glob("out/.staged/*")]


def test_it_is_certified() -> None:
    assert certify_sink(GuideCase(), stride=17).points > 100


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_it_is_certified_at_every_point() -> None:
    assert certify_sink(GuideCase()).schedules > 800


def test_a_commit_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    committer = example()[1]["JsonLines"](str(tmp_path)).create_committer(SinkStart("job", "run"))
    (tmp_path / ".staged" / "part").write_text('{"x": 1}\n')
    for _ in range(2):
        committer.commit(7, {0: ["part"]})
    committer.commit(8, {0: []})
    committer.close()
    assert shown(tmp_path) == [1]


def test_it_has_about_eighty_lines() -> None:
    assert 60 < len(example()[0].splitlines()) < 95
