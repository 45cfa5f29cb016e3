"""A row sends a message that can fail as its last, and the state behind it takes each answer; any
other declaration is refused.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.fsm import Answers, DeclarationError, Port, fallible

MODULE = """
from __future__ import annotations

from epochgate.fsm import (
    STAY, Bool, Channel, Fifo, Ignore, Machine, Opaque, Port, Row, Trigger, fallible, output,
)


class StorePort(Port):
    def note(self) -> None: ...

    @fallible("failed, expire", succeeds="saved", within="store_timeout_s")
    def save(self) -> None: ...

    @fallible("failed")
    def send(self, parcel: Opaque) -> None: ...


class Clerk(Machine):
    STATES = ("idle", "saving", "over")
    INITIAL = "idle"
    TERMINAL = ("over",)
    store: StorePort = output(StorePort)
    is_old: bool = Bool()
    parcels: Fifo[Opaque] = Channel("parcel", "parcels")
    begin: Trigger
    resume: Trigger
    stop: Trigger
    saved: Trigger
    failed: Trigger
    expire: Trigger

    ROWS = (
        Row("begin",   "idle",   {dest}, None, "{after}", "there is something to save"),
        Row("resume",  "idle",   "saving", None, None, "another has begun"),
        Row("stop",    "saving", "over",   None, None, "nothing is awaited any more"),
        Row("saved",   "saving", "idle",   None, None, "it is there"),
        Row("failed",  "saving", "idle",   None, None, "it is not there"),
        Ignore("expire", "saving",         None,       "a save takes as long as it takes"),
    )

    def note(self) -> None:
        self.store.note()

    def save(self) -> None:
        self.store.save()

    def save_through_another(self) -> None:
        self.save()

    def act(self) -> None:
{action}
"""

Declare = Callable[..., None]


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Declare a machine with what it does at the beginning, and the state in which it is then."""

    def run(after: str, action: str = "pass", dest: str = '"saving"') -> None:
        path = tmp_path / "clerk.py"
        body = textwrap.indent(textwrap.dedent(action), " " * 8)
        text = MODULE.format(after=after, action=body, dest=dest)
        path.write_text(text, encoding="utf-8")
        exec(compile(text, str(path), "exec"), {"__name__": "clerk"})  # noqa: S102  # our own text

    return run


ONE_FOR_EACH = """
for parcel in self.parcels.take_all():
    self.store.send(parcel)
"""
IN_ONE_BRANCH = """
if self.is_old:
    self.store.save()
else:
    self.store.note()
    self.store.note()
"""
IN_BOTH = """
if self.is_old:
    self.store.save()
else:
    self.store.send(self.parcels.pop())
"""


@pytest.mark.parametrize(
    ("after", "action"),
    [
        ("note, save", "pass"),
        ("note, note", "pass"),
        ("note, save_through_another", "pass"),
        ("note, act", IN_ONE_BRANCH),
        ("note, act", IN_BOTH),
        ("act", "self.store.save()\nself.is_old = True"),
    ],
)
def test_a_row_whose_last_message_can_fail_is_accepted(
    declare: Declare, after: str, action: str
) -> None:
    declare(after, action)


@pytest.mark.parametrize(
    ("after", "action", "message"),
    [
        ("save, note", "pass", "sends store.note behind store.save, which may fail"),
        ("save_through_another, note", "pass", "sends store.note behind store.save"),
        ("save, act", ONE_FOR_EACH, "sends store.send behind store.save"),
        ("act", ONE_FOR_EACH, "sends store.send behind store.send"),
        ("act, note", IN_ONE_BRANCH, "sends store.note behind store.save"),
        ("act", IN_ONE_BRANCH + "self.store.note()", "sends store.note behind store.save"),
        ("act", "self.store.save()\nself.store.save()", "sends store.save behind store.save"),
    ],
)
def test_a_row_that_sends_on_behind_a_message_that_can_fail_is_refused(
    declare: Declare, after: str, action: str, message: str
) -> None:
    with pytest.raises(DeclarationError, match=message) as raised:
        declare(after, action)
    assert "clerk.Clerk: row 'begin' from 'idle'" in str(raised.value)
    assert "send it in the row of an answer" in str(raised.value)


@pytest.mark.parametrize(
    ("dest", "missing", "state"),
    [('"over"', "saved, failed, expire", "over"), ("STAY", "saved, failed, expire", "idle")],
)
def test_a_state_without_a_row_for_an_answer_is_refused(
    declare: Declare, dest: str, missing: str, state: str
) -> None:
    with pytest.raises(DeclarationError) as raised:
        declare("save", dest=dest)
    assert f"sends store.save, whose answers {missing} have no row in {state!r}" in str(
        raised.value
    )
    assert "an Ignore with its reason" in str(raised.value)


def test_a_port_tells_how_a_message_is_answered() -> None:
    class Post(Port):
        @fallible("lost, late", succeeds="there", within="timeout_s", in_event=True)
        def send(self) -> None: ...
        def note(self) -> None: ...

    assert Post.answers("send") == Answers(("lost", "late"), ("there",), "timeout_s", True)
    assert Answers(("lost",), ("there",)).all == ("there", "lost")
    assert Post.answers("note") is None
    assert Post.messages() == {"send": (), "note": ()}
