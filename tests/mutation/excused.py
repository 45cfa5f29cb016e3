"""Which mutants of all kinds survive every claim and every test, and why they may.

`reasons` has those of the kinds that checker and runtime both have to find. A reason for a mutant
that is found fails.
"""

from __future__ import annotations

EXCUSED: dict[str, str] = {}
