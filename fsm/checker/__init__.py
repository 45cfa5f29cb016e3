"""Checks closed systems: explores every state, and gives the shortest counterexamples.

`compiler` lowers a system to small functions over packed states; `engines` search with these, or
with the machines themselves.
"""

from epochgate.fsm.checker.checking import check
from epochgate.fsm.checker.induction import check_inductive
from epochgate.fsm.checker.result import Result, Verdict
from epochgate.fsm.checker.simulation import simulate

__all__ = ["Result", "Verdict", "check", "check_inductive", "simulate"]
