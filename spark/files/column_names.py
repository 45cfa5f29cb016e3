"""Names that the columns of a file may have, and which names a target takes for one.

Decides: a name that two columns have is ambiguous, which is never "there is none"; a column that is
read has a name. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from epochgate.errors import EpochgateError, UsageError


class NamesUnusable(UsageError):
    """The columns of a file cannot be told apart by their names: path, what is wrong."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r}: {self.args[1]}. Rename the columns in the file; or start with "
            "--columns (columns in Python) and name the other ones, or with --on-bad-file skip "
            "(on_bad_file), which records the file and continues without it."
        )


class NameTwice(EpochgateError):
    """Two columns have one name to a target's readers: the format, the two names."""

    def __str__(self) -> str:
        readers, one, other = self.args
        return (
            f"the columns {one!r} and {other!r} are the same column to {readers}. Rename one of "
            "them before it is written, in the transform for instance, or leave it out."
        )


def require_usable(path: str, schema: pa.Schema, wanted: Iterable[str] | None) -> None:
    """Refuse columns of a file that cannot be read by name, of all or of the `wanted` ones.

    Raises NamesUnusable.
    """
    names = schema.names
    for name in names if wanted is None else wanted:
        if names.count(name) > 1:
            at = [number for number, one in enumerate(names, 1) if one == name]
            raise NamesUnusable(path, f"columns {_counted(at)} have the same name, {name!r}")
        if not name.strip():
            raise NamesUnusable(path, f"column {names.index(name) + 1} has no name: {name!r}")
        if name in names:
            _require_fields_apart(path, name, schema.field(name).type)


def same_name(names: Sequence[str], *, tells_capitals: bool) -> tuple[str, str] | None:
    """The first two of these names that are one to a target; none if it can tell all apart.

    >>> same_name(["id", "ID"], tells_capitals=False), same_name(["id", "ID"], tells_capitals=True)
    (('id', 'ID'), None)
    """
    first: dict[str, str] = {}
    for name in names:
        before = first.setdefault(name if tells_capitals else name.lower(), name)
        if before is not name or names.count(name) > 1:
            return before, name
    return None


def _require_fields_apart(path: str, name: str, kind: pa.DataType) -> None:
    inner = [kind.field(at) for at in range(kind.num_fields)]
    if pa.types.is_struct(kind):
        fields = [field.name for field in inner]
        if twice := next((one for one in fields if fields.count(one) > 1), None):
            raise NamesUnusable(path, f"column {name!r} has two fields of the name {twice!r}")
    for field in inner:
        _require_fields_apart(path, name, field.type)


def _counted(numbers: Sequence[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
