"""A vault of `transitions` for the tests: a wrong code three times blocks it."""

from __future__ import annotations

from typing import Any

from transitions import Machine

from epochgate.fsm import from_transitions
from epochgate.fsm.existing import happens, never, sometimes

TRANSITIONS: list[Any] = [
    {
        "trigger": "enter",
        "source": "locked",
        "dest": "open",
        "conditions": ["may_try", "is_right"],
        "after": "forget",
    },
    {
        "trigger": "enter",
        "source": "locked",
        "dest": None,
        "conditions": "may_try",
        "after": "count",
    },
    {"trigger": "enter", "source": "locked", "dest": "blocked"},
    ["shut", "open", "locked"],
]


class Vault:
    def __init__(self) -> None:
        self.tries = 0
        self.machine = Machine(
            self, ["locked", "open", "blocked"], transitions=TRANSITIONS, initial="locked"
        )

    def may_try(self, code: int) -> bool:
        return self.tries < 3

    def is_right(self, code: int) -> bool:
        return code == 1234

    def count(self, code: int) -> None:
        self.tries += 1

    def forget(self, code: int) -> None:
        self.tries = 0


vault = Vault()
read = from_transitions(
    vault,
    fields={"tries": 3},
    claims={
        "it opens again": happens("open", "locked", "open"),
        "it opens": sometimes(lambda state: state == "open"),
        "never blocked": never("blocked"),
    },
)
island = Machine(
    states=["a", "b", "island"],
    transitions=[["go", "a", "b"], ["go", "b", "a"]],
    initial="a",
)
ring = Machine(states=["a", "b"], transitions=[["go", "a", "b"], ["go", "b", "a"]], initial="a")
trap = Machine(
    states=["a", "b", {"name": "end", "final": True}],
    transitions=[["go", "a", "b"], ["stop", "a", "end"]],
    initial="a",
)
