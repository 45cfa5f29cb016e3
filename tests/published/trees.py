"""A tree in every graph of four nodes, and Paxos with one acceptor: of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    weakly_fair,
)

THERE = "there"


class AnyTree(Environment):
    """Four nodes of any graph, whose edges are bits, and what each knows of its distance."""

    STATES, INITIAL = (THERE,), THERE

    edges: int = Int(63, start=ANY)
    distance: list[int] = Array(Int("far"), "nodes", start=[0, 5, 5, 5])
    mother: list[int] = Array(Int("last"), "nodes", start=[0, 1, 2, 3])

    def has(self, one: int, other: int) -> bool:
        first = one if one < other else other
        second = other if one < other else one
        return (
            one != other
            and self.edges >> (first * (7 - first) // 2 + second - first - 1 & 7) & 1 == 1
        )

    def is_settled(self, node: int) -> bool:
        far = self.distance[node]
        if node == 0:
            return far == 0 and self.mother[node] == node
        if far == self.system.far:
            return self.mother[node] == node and all(
                not self.has(node, i) or self.distance[i] == self.system.far
                for i in range(self.system.nodes)
            )
        return self.has(node, self.mother[node]) and far == self.distance[self.mother[node]] + 1


class AnyWay(Environment):
    """A node that takes a neighbour for its mother, and a distance."""

    INDEX = ("node", "other", "length")
    STATES, INITIAL = (THERE,), THERE

    system: AnySpanning
    node: int
    other: int
    length: int

    take: Trigger

    ROWS = (Row("take", THERE, STAY, "is_edge and is_nearer", "note", "it is nearer this way"),)

    def is_edge(self) -> bool:
        return self.system.tree.has(self.node, self.other)

    def is_nearer(self) -> bool:
        return (
            self.system.tree.distance[self.other] < self.length
            and self.length < self.system.tree.distance[self.node]
        )

    def note(self) -> None:
        self.system.tree.distance[self.node] = self.length
        self.system.tree.mother[self.node] = self.other


class AnySpanning(ClosedSystem):
    """SpanTreeTest: a tree in each of the 64 graphs of four nodes."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"node": "nodes", "other": "nodes", "length": "far"}
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 4, "far": 5}
    DERIVED: ClassVar[dict[str, str]] = {"last": "nodes - 1"}
    STEPS = (Step("way", "take", is_fair=False),)
    FAIRNESS = (weakly_fair(ANY),)

    nodes: int
    tree: AnyTree = machines(AnyTree)
    way: dict[tuple[int, int, int], AnyWay] = machines(AnyWay)

    @eventually("the tree is found")
    def is_found(self) -> bool:
        return all(self.tree.is_settled(i) for i in range(self.nodes))


class Acceptor(Environment):
    """The one acceptor of Paxos, and the messages that were sent, in two ballots and for one value:
    what it has voted is a ballot, -1 none. Of an answer it matters which vote it tells.
    """

    STATES, INITIAL = (THERE,), THERE

    ballot: int = Int(1, start=-1, low=-1)
    voted: int = Int(1, start=-1, low=-1)
    is_begun: list[bool] = Array(Bool(), "ballots")
    answer: list[int] = Array(Int(3), "ballots")
    """For each ballot: 0 is no answer, 1 one without a vote, 2 and 3 with a vote in ballot 0 or 1.
    """
    is_asked: list[bool] = Array(Bool(), "ballots")
    is_voted: list[bool] = Array(Bool(), "ballots")


class Round(Environment):
    """A ballot."""

    INDEX = ("ballot",)
    STATES, INITIAL = (THERE,), THERE

    system: Paxos
    ballot: int

    begin: Trigger
    answer: Trigger
    ask: Trigger
    vote: Trigger

    ROWS = (
        Row("begin", THERE, STAY, None, "send_begin", "it begins, perhaps again"),
        Row("answer", THERE, STAY, "may_answer", "send_answer", "it is higher than any before"),
        Row("ask", THERE, STAY, "may_ask", "send_ask", "it has its answer"),
        Row("vote", THERE, STAY, "may_vote", "send_vote", "no higher one is known"),
    )

    def may_answer(self) -> bool:
        return (
            self.system.acceptor.is_begun[self.ballot] and self.ballot > self.system.acceptor.ballot
        )

    def may_ask(self) -> bool:
        return (
            not self.system.acceptor.is_asked[self.ballot]
            and self.system.acceptor.answer[self.ballot] > 0
        )

    def may_vote(self) -> bool:
        return (
            self.system.acceptor.is_asked[self.ballot]
            and self.ballot >= self.system.acceptor.ballot
        )

    def send_begin(self) -> None:
        self.system.acceptor.is_begun[self.ballot] = True

    def send_answer(self) -> None:
        self.system.acceptor.ballot = self.ballot
        self.system.acceptor.answer[self.ballot] = self.system.acceptor.voted + 2

    def send_ask(self) -> None:
        self.system.acceptor.is_asked[self.ballot] = True

    def send_vote(self) -> None:
        self.system.acceptor.ballot = self.ballot
        self.system.acceptor.voted = self.ballot
        self.system.acceptor.is_voted[self.ballot] = True


class Paxos(ClosedSystem):
    """MCPaxos: one acceptor, one value and two ballots."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"ballot": "ballots"}
    CONSTANTS: ClassVar[dict[str, int]] = {"ballots": 2}
    STEPS = (
        Step("round", "begin"),
        Step("round", "answer"),
        Step("round", "ask"),
        Step("round", "vote"),
    )

    ballots: int
    acceptor: Acceptor = machines(Acceptor)
    round: list[Round] = machines(Round)

    @always("a vote was asked for")
    def is_asked(self) -> bool:
        return all(
            not self.acceptor.is_voted[i] or self.acceptor.is_asked[i] for i in range(self.ballots)
        )
