"""Searches the states of closed systems: exact, breadth-first, with the shortest
counterexamples.
"""

from epochgate.fsm.explore.checking import check
from epochgate.fsm.explore.result import Result, Verdict
from epochgate.fsm.explore.simulation import simulate

__all__ = ["Result", "Verdict", "check", "simulate"]
