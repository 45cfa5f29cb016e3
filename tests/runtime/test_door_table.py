"""The table of doors has every method of the public classes through which user code is called."""

from __future__ import annotations

from tests.runtime import doors


def methods_of(user_code: type) -> set[str]:
    return {
        name
        for name, member in vars(user_code).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    }


def test_each_method_of_user_code_is_a_door_or_says_what_looks_at_it() -> None:
    table = {
        *doors.COORDINATOR,
        *doors.OPERATOR,
        *doors.COMMITTER,
        *doors.STRATEGY,
        *doors.ON_SPARK,
        *doors.CLOSING,
    }
    missing = [
        f"{user_code.__name__}.{method}"
        for user_code, stands_for in doors.CLASSES.items()
        for method in sorted(methods_of(user_code))
        if f"{stands_for}.{method}" not in table
    ]
    assert sorted(missing) == sorted(doors.ELSEWHERE)
