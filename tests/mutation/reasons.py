"""Why some mutants are not found, by one side or by both."""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
UNSEEN_BY_THE_CHECKER: dict[str, str] = {}
UNSEEN_BY_THE_RUNTIME: dict[str, str] = {}
