"""The subset of Python that guards and actions are made of, so that they can be compiled.

Each method is parsed once into a typed tree (`tree`); what lies outside the subset is refused with
file, line, the construct, and what to write instead. The checker lowers the tree and nothing else.
"""

from epochgate.fsm.subset.checks import Interaction, Subset, check_machine, check_system

__all__ = ["Interaction", "Subset", "check_machine", "check_system"]
