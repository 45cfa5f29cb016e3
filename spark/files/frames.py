"""Arguments and results of a user's transform: Arrow record batches and tables, or data frames.

Decides which of these a function takes, by the annotation of its first parameter unless the user
says it; how a batch becomes that, and a result becomes batches again. Frames of pandas have types
that know missing values (Int64, Float64, boolean, string; Arrow's for decimals, dates and what is
nested), so that a missing value changes no column's type. Leaves to others: calling the function.
Runs in a task, and on the driver for what is known before it runs.
"""

from __future__ import annotations

import dis
import importlib.util
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, Literal

import pyarrow as pa

from epochgate.errors import UsageError

Takes = Literal["arrow", "table", "pandas", "polars"]

_BY_TYPE: dict[tuple[str, str], Takes] = {
    ("pyarrow", "RecordBatch"): "arrow",
    ("pyarrow", "Table"): "table",
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
}
_ALIASES = {"pa": "pyarrow", "pd": "pandas", "pl": "polars"}
_WANTED = {
    "arrow": "a pyarrow.RecordBatch",
    "table": "a pyarrow.Table",
    "pandas": "a pandas.DataFrame",
    "polars": "a polars.DataFrame",
}
_HOW = (
    "annotate its first parameter with pyarrow.RecordBatch, pyarrow.Table, pandas.DataFrame or "
    "polars.DataFrame, or say it by --transform-takes arrow, table, pandas or polars "
    "(transform_takes in Python)"
)
_FRAME_PACKAGES = ("pandas", "polars", "pyspark", "pyarrow")
_INSTEAD = {
    "pandas.DataFrame": "pyarrow.RecordBatch.from_pandas(frame, preserve_index=False)",
    "pandas.Series": "pyarrow.RecordBatch.from_pandas(series.to_frame(), preserve_index=False)",
    "polars.DataFrame": "frame.to_arrow()",
    "polars.Series": "series.to_frame().to_arrow()",
    "polars.LazyFrame": "frame.collect().to_arrow()",
}
"""What to return instead of what is often returned; some of these are iterables of columns."""


class TransformUnclear(UsageError):
    """A transform that takes or returns what no transform does: what is wrong, what to do."""

    def __str__(self) -> str:
        return f"the transform {self.args[0]}: {self.args[1]}"


def takes_of(function: Callable[..., Any], given: Takes | None) -> Takes:
    """Return the kind of argument that the function takes: as given, or by its annotation; a record
    batch without one.

    Raises TransformUnclear for another annotation, a package that is not installed, or a function
    that never returns anything.
    """
    _require_return(function)
    takes = given or _annotated(function)
    if takes in ("pandas", "polars") and importlib.util.find_spec(takes) is None:
        raise TransformUnclear(
            f"takes {_WANTED[takes]}, and {takes} is not installed",
            f"`pip install {takes}`, here and where the workers run",
        )
    return takes


def to_argument(batch: pa.RecordBatch, takes: Takes) -> Any:
    """The batch as the function takes it."""
    if takes == "table":
        return pa.Table.from_batches([batch])
    if takes == "pandas":
        return batch.to_pandas(types_mapper=_pandas_type)
    if takes == "polars":
        import polars as pl

        return pl.from_arrow(batch)
    return batch


def to_batches(result: Any, takes: Takes, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batches of a result, with a type for each column; `batch` is what the result is of.

    Raises TypeError that names what was returned and what to return.
    """
    if result is None:
        return
    if (found := kind_of(result)) in ("pandas.DataFrame", "polars.DataFrame"):
        if not found.startswith(takes):
            raise TypeError(
                f"it takes {_WANTED[takes]} and returned a {found}; return {_INSTEAD[found]}, "
                f"or {_HOW}"
            )
        yield from _typed(_table_of(result, found), batch)
    elif isinstance(result, pa.RecordBatch):
        yield from _typed(pa.Table.from_batches([result]), batch)
    elif isinstance(result, pa.Table):
        yield from _typed(result, batch)
    elif found in _INSTEAD:
        raise TypeError(f"it returned a {found}; return {_instead(found, takes)}")
    elif isinstance(result, Iterable) and not isinstance(result, (str, bytes, dict)):
        for one in result:
            if not isinstance(one, (pa.RecordBatch, pa.Table)):
                raise TypeError(
                    f"it returned a {found} with a {kind_of(one)} in it; expected RecordBatch: "
                    f"return {_WANTED[takes]}, or several batches, or None for no rows"
                )
            yield from to_batches(one, takes, batch)
    else:
        raise TypeError(
            f"it returned a {found}; expected RecordBatch, Table or a data frame: return "
            f"{_WANTED[takes]}, or None for no rows"
        )


def kind_of(value: object) -> str:
    """The type as it is imported: `pandas.DataFrame`, whatever module of pandas defines it.

    >>> kind_of({})
    'dict'
    """
    module, name = type(value).__module__, type(value).__qualname__
    if module == "builtins":
        return name
    package = module.partition(".")[0]
    return f"{package if package in _FRAME_PACKAGES else module}.{name}"


def _pandas_type(kind: pa.DataType) -> Any:
    """A type of pandas that comes back as this one; none for points in time, which do anyway."""
    import pandas as pd

    known = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float32(): pd.Float32Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype("pyarrow"),
    }
    if kind in known:
        return known[kind]
    return None if pa.types.is_timestamp(kind) else pd.ArrowDtype(kind)


def _instead(found: str, takes: Takes) -> str:
    if takes == "pandas" and found == "pandas.Series":
        return "series.to_frame()"
    if takes == "polars" and found != "pandas.Series":
        return _INSTEAD[found].removesuffix(".to_arrow()")
    return _INSTEAD[found]


def _table_of(frame: Any, kind: str) -> pa.Table:
    if kind == "pandas.DataFrame":
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    return frame.to_arrow()


def _typed(table: pa.Table, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Batches without empty ones, whose columns have names and types that a target can hold."""
    names = table.schema.names
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise TypeError(f"it returned columns of the same name, {', '.join(twice)}; rename them")
    fields = []
    for field in table.schema:
        kind = _plain(field.type)
        if pa.types.is_null(kind) and field.name in batch.schema.names:
            kind = batch.schema.field(field.name).type
        if pa.types.is_null(kind):
            raise TypeError(
                f"it returned column {field.name!r} without a value and so without a type; give it "
                "one, such as pyarrow.nulls(rows, pyarrow.string()), or "
                "frame.astype({'column': 'string[pyarrow]'})"
            )
        fields.append(pa.field(field.name, kind))
    wanted = pa.schema(fields)
    if wanted != table.schema:
        table = table.cast(wanted)
    yield from (one for one in table.to_batches() if one.num_rows)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that readers know for one of which polars and others have a variant."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _plain(one.type)) for one in kind])
    return kind


def _annotated(function: Callable[..., Any]) -> Takes:
    try:
        try:
            signature = inspect.signature(function, eval_str=True)
        except (NameError, AttributeError):
            # An annotation may name what is imported for type checkers alone.
            signature = inspect.signature(function)
    except (ValueError, TypeError):
        return "arrow"
    first = next(iter(signature.parameters.values()), None)
    if first is None:
        raise TransformUnclear("takes no argument", f"it is called with a batch; {_HOW}")
    annotation = first.annotation
    if annotation is inspect.Parameter.empty or annotation is Any:
        return "arrow"
    if isinstance(annotation, str):
        package, _, name = annotation.rpartition(".")
        key = (_ALIASES.get(package, package), name)
    else:
        module = getattr(annotation, "__module__", "")
        key = (module.partition(".")[0], getattr(annotation, "__qualname__", ""))
    if key not in _BY_TYPE:
        raise TransformUnclear(
            f"takes {first.name}: {annotation if isinstance(annotation, str) else '.'.join(key)}",
            f"no batch can be given as that; {_HOW}",
        )
    return _BY_TYPE[key]


def _require_return(function: Callable[..., Any]) -> None:
    """Refuse a function whose `return` was forgotten: every row would be left out."""
    code: CodeType | None = function.__code__ if isinstance(function, FunctionType) else None
    if code is None or inspect.isgeneratorfunction(function):
        return
    steps = list(dis.get_instructions(code))
    returns = [
        before for before, step in itertools.pairwise(steps) if step.opname == "RETURN_VALUE"
    ]
    constant = [step for step in steps if step.opname == "RETURN_CONST"]
    values = [step.argval for step in constant] + [
        before.argval if before.opname == "LOAD_CONST" else before for before in returns
    ]
    if values and all(value is None for value in values):
        raise TransformUnclear(
            f"{function.__qualname__} returns nothing",
            "every row would be left out; return the batch, or rows of it",
        )
