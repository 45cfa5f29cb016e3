"""Workbooks of Office Open XML (.xlsx, .xlsm): the cells of one sheet, each as the value it has.

Decides which value a cell is: numbers by their double, a whole one without a point; days and times
by the format of the cell, to the millisecond, which is what such programs keep. What has no value
is told as a `Fault` and never left out: an error such as #N/A, a formula that no program has
calculated, a day that there never was. Rows are read one after the other; the shared texts of a
workbook are held. Runs on the driver and in tasks.
"""

from __future__ import annotations

import datetime
import json
import math
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple
from xml.parsers import expat

from epochgate.spark.files.records import RECORD_BYTES_MAX
from epochgate.spark.files.xml_documents import parsed_blocks

_DAMAGE = (
    expat.ExpatError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    OverflowError,
    RuntimeError,  # a part is encrypted, or compressed in a way that is not known
    ValueError,
)
_ROWS_MAX, _COLUMNS_MAX = 1 << 20, 1 << 14
"""No sheet has more."""
_PART_BYTES_MAX = 64 << 20
"""Of a part that is neither a sheet nor the shared texts."""
_TEXTS_MAX = 256 << 20
_TEXT_COSTS = 50
"""Letters that each shared text counts for beside its own."""
_TRUTHS = {"1": "true", "0": "false", "true": "true", "false": "false"}
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*", re.ASCII)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,37}")
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_NO_DATE = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^]]*\]', re.IGNORECASE)
_DATES = frozenset([14, 15, 16, 17, *range(27, 32), 34, 35, 36, *range(50, 59)])
_TIMES, _BOTH, _SPANS = (
    frozenset([18, 19, 20, 21, 32, 33, 45, 47]),
    frozenset([22]),
    frozenset([46]),
)
_NEVER_EMPTY = frozenset(["n", "s", "b", "d"])
"""Kinds of cells that have no value where its text is empty."""
_DAY_MS = 24 * 3600 * 1000
_LEAP_DAY = 60
"""The number of 1900-02-29, which spreadsheets count and no calendar has."""


class WorkbookUnusable(ValueError):
    """A workbook is not read, for a reason that is no damage."""


class Fault(NamedTuple):
    """A cell without a value that could be taken: its text, why."""

    text: str
    reason: str


class Cells(NamedTuple):
    """The cells of a row that are not empty by their columns from 0: JSON texts, or faults."""

    row: int
    values: dict[int, str | Fault]


class Workbook:
    """An open workbook. Raises ValueError for a file that is none."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
            self._read_sheets()
        except WorkbookUnusable:
            raise
        except _DAMAGE as error:
            raise ValueError(
                f"it is no workbook of Office Open XML ({error}); save it as .xlsx without a "
                "password"
            ) from error

    def _read_sheets(self) -> None:
        (place,) = (target for kind, target in self._relations("") if kind == "officeDocument")
        parts = dict(self._relations(place, by_id=True))
        self._is_1904 = False
        self.sheets: dict[str, str] = {}
        """The part of each sheet by its name, in order."""
        for name, attributes in self._elements(place):
            if name == "sheet":
                self.sheets[attributes["name"]] = parts[attributes["id"]]
            elif name == "workbookPr":
                self._is_1904 = attributes.get("date1904") in ("1", "true")
        kinds = dict(self._relations(place))
        self._texts = self._shared(kinds["sharedStrings"]) if "sharedStrings" in kinds else []
        self._formats = self._styles(kinds["styles"]) if "styles" in kinds else []

    def part_of(self, wanted: str) -> str:
        """The part of the sheet of this name, or of this number from 1, or of the first. Raises
        ValueError.
        """
        names = list(self.sheets)
        if wanted in self.sheets:
            return self.sheets[wanted]
        number = int(wanted or "1") if (wanted or "1").isdecimal() else 0
        if not 1 <= number <= len(names):
            raise ValueError(
                f"it has no sheet {wanted!r}; it has {', '.join(map(repr, names))}. Name one, or "
                "its number from 1, by --sheet (sheet in Python)"
            )
        return self.sheets[names[number - 1]]

    def rows(self, part: str) -> Iterator[Cells]:
        """The rows with a cell that is not empty. Raises ValueError behind those before a fault."""
        found = _Sheet(self._value)
        for _ in _parsed(self._zip, part, found.begin, found.end, found.text):
            yield from found.take()

    def _relations(self, place: str, *, by_id: bool = False) -> Iterator[tuple[str, str]]:
        """The parts that belong to one, by the last word of their kind or by their ids."""
        folder, name = posixpath.split(place)
        for element, attributes in self._elements(posixpath.join(folder, "_rels", f"{name}.rels")):
            if element == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, attributes["Target"]))
                kind = attributes["Type"].rpartition("/")[2]
                yield attributes["Id"] if by_id else kind, target.lstrip("/")

    def _elements(self, part: str) -> Iterator[tuple[str, dict[str, str]]]:
        found: list[tuple[str, dict[str, str]]] = []
        has = 0
        for count in _parsed(self._zip, part, lambda name, of: found.append((name, of))):
            yield from found
            found.clear()
            has += count
            if has > _PART_BYTES_MAX:
                raise WorkbookUnusable(f"its part {part!r} has more than {_PART_BYTES_MAX} bytes")

    def _shared(self, part: str) -> list[str]:
        texts = _Shared()
        for _ in _parsed(self._zip, part, texts.begin, texts.end, texts.text):
            pass
        return texts.found

    def _styles(self, part: str) -> list[str]:
        """The kind of value of each style: "date", "time", "both", "span", or "" for a number."""
        own: dict[int, str] = {}
        kinds: list[str] = []
        within = ""
        for name, attributes in self._elements(part):
            if name in ("cellXfs", "cellStyleXfs"):
                within = name
            elif name == "numFmt":
                own[int(attributes["numFmtId"])] = kind_of(attributes["formatCode"])
            elif name == "xf" and within == "cellXfs":
                number = int(attributes.get("numFmtId", 0))
                kinds.append(own.get(number, _kind_of_known(number)))
        return kinds

    def _value(self, kind: str, style: int, text: str | None) -> str | Fault:
        if text is None:
            return Fault("", "the formula of the cell was never calculated")
        if kind == "s":
            number = int(text) if text.isdecimal() else -1
            if 0 <= number < len(self._texts):
                return _quoted(self._texts[number])
            return Fault(text, f"the workbook has no shared text {text!r}")
        if kind in ("str", "inlineStr", "d"):
            return _quoted(_unescaped(text) if kind == "str" else text)
        if kind == "b":
            return _TRUTHS.get(text.strip().lower()) or Fault(text, f"{text!r} is no truth")
        if kind == "e":
            return Fault(text, f"the cell is the error {text}")
        if not _NUMBER.fullmatch(text):
            return Fault(text, f"{text!r} is no number")
        shown = self._formats[style] if 0 <= style < len(self._formats) else ""
        return self._time(float(text), shown) if shown else _number(text)

    def _time(self, days: float, kind: str) -> str | Fault:
        if not math.isfinite(days * _DAY_MS):
            return _no_day(days)
        whole, ms = divmod(round(days * _DAY_MS), _DAY_MS)
        if kind == "span":
            hours, rest = divmod(round(days * _DAY_MS), 3600 * 1000)
            return _quoted(f"{hours:02}:{_clock(rest)[3:]}") if days >= 0 else _no_day(days)
        if whole < 0:
            return _no_day(days)
        if kind == "time" and whole == 0:
            return _quoted(_clock(ms))
        if self._is_1904:
            first = datetime.date(1904, 1, 1)
        elif whole == _LEAP_DAY:
            return _no_day(days)
        else:
            first = datetime.date(1899, 12, 31 if whole < _LEAP_DAY else 30)
        try:
            day = first + datetime.timedelta(days=whole)
        except OverflowError:
            return _no_day(days)
        return _quoted(f"{day}" if kind == "date" and not ms else f"{day} {_clock(ms)}")


def kind_of(code: str) -> str:
    """The kind of value that a format of a cell shows.

    >>> kind_of("yyyy-mm-dd"), kind_of("h:mm"), kind_of("d/m/yy hh:mm"), kind_of("[h]:mm")
    ('date', 'time', 'both', 'span')
    >>> kind_of('0.00" days"'), kind_of("[Red]#,##0"), kind_of("General")
    ('', '', '')
    """
    if code.lower() == "general":
        return ""
    shown = _NO_DATE.sub("", code.partition(";")[0]).lower()
    if re.search(r"\[[hms]+\]", shown):
        return "span"
    has_day, has_clock = re.search("[dy]", shown), re.search("[hs]", shown)
    if has_clock:
        return "both" if has_day else "time"
    return "date" if has_day or "m" in shown else ""


def _kind_of_known(number: int) -> str:
    kinds = {"date": _DATES, "time": _TIMES, "both": _BOTH, "span": _SPANS}
    return next((kind for kind, numbers in kinds.items() if number in numbers), "")


def _no_day(days: float) -> Fault:
    return Fault(repr(days), f"the number {days!r} is no day or time that there is")


def _clock(ms: int) -> str:
    seconds, ms = divmod(ms, 1000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{ms:03}" if ms else text


def _number(text: str) -> str | Fault:
    if _WHOLE.fullmatch(text):
        return text
    value = float(text)
    if value.is_integer() and abs(value) < 2**63:
        return str(int(value))
    return repr(value) if value - value == 0 else Fault(text, f"{text} is no number")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


class _Texts:
    """Texts of several pieces, without what is written above them to be read aloud. Blanks around a
    piece count if it says so, as programs write it.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._piece: list[str] | None = None
        self._is_kept = False
        self._aloud = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        self._aloud += name == "rPh"
        if name == "t" and not self._aloud:
            self._piece, self._is_kept = [], attributes.get("space") == "preserve"

    def end(self, name: str) -> None:
        self._aloud -= name == "rPh"
        if name == "t" and self._piece is not None:
            piece = "".join(self._piece)
            self.parts.append(piece if self._is_kept else piece.strip())
            self._piece = None

    def text(self, data: str) -> None:
        if self._piece is not None:
            self._piece.append(data)

    def take(self) -> str:
        found, self.parts = _unescaped("".join(self.parts)), []
        return found


class _Shared(_Texts):
    """All shared texts of a workbook."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._has = 0

    def end(self, name: str) -> None:
        super().end(name)
        if name == "si":
            self.found.append(self.take())
            self._count(_TEXT_COSTS)

    def text(self, data: str) -> None:
        super().text(data)
        self._count(len(data))

    def _count(self, letters: int) -> None:
        self._has += letters
        if self._has > _TEXTS_MAX:
            raise WorkbookUnusable(f"its texts have more than {_TEXTS_MAX} letters")


class _Sheet:
    """The rows of a sheet that is parsed, as far as they have ended."""

    def __init__(self, value_of: Callable[[str, int, str | None], str | Fault]) -> None:
        self._value_of = value_of
        self._rows: list[Cells] = []
        self._now = Cells(0, {})
        self._column = -1
        self._kind, self._style = "n", 0
        self._text: list[str] | None = None
        self._inline = _Texts()
        self._has_formula = self._is_text = False
        self._has = 0

    def take(self) -> list[Cells]:
        found, self._rows = self._rows, []
        return found

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if name == "row":
            number = int(attributes.get("r", self._now.row + 1))
            if not 1 <= number <= _ROWS_MAX:
                raise ValueError(f"no sheet has a row {number}")
            self._now, self._has = Cells(number, {}), 0
            self._column = -1
        elif name == "c":
            place = attributes.get("r")
            self._column = self._column + 1 if place is None else _column_of(place)
            if not 0 <= self._column < _COLUMNS_MAX or self._column in self._now.values:
                raise ValueError(f"row {self._now.row} has a cell at {place!r}, or has it twice")
            self._kind = attributes.get("t", "n")
            self._style = int(attributes.get("s", 0))
            self._text, self._has_formula = None, False
        elif name == "f":
            self._has_formula = True
        elif name == "v":
            self._is_text, self._text = True, []
        else:
            self._inline.begin(name, attributes)

    def end(self, name: str) -> None:
        if name == "row":
            if self._now.values:
                self._rows.append(self._now)
        elif name == "is":
            self._text = [self._inline.take()]
        elif name == "c":
            text = None if self._text is None else "".join(self._text)
            text = None if text == "" and self._kind in _NEVER_EMPTY else text
            if self._has_formula or text is not None:
                found = self._value_of(self._kind, self._style, text)
                self._now.values[self._column] = found
        else:
            self._inline.end(name)
        self._is_text = False

    def text(self, data: str) -> None:
        self._has += len(data)
        if self._has > RECORD_BYTES_MAX:
            raise WorkbookUnusable(f"row {self._now.row} has more than {RECORD_BYTES_MAX} letters")
        if self._is_text:
            assert self._text is not None
            self._text.append(data)
        self._inline.text(data)


def _column_of(place: str) -> int:
    number = 0
    for letter in place.rstrip("0123456789"):
        number = number * 26 + ord(letter.upper()) - ord("A") + 1
    return number - 1


def _parsed(
    book: zipfile.ZipFile,
    part: str,
    begin: Callable[[str, dict[str, str]], object],
    end: Callable[[str], object] = lambda name: None,
    text: Callable[[str], object] = lambda data: None,
) -> Iterator[int]:
    """Parse a part block by block; names without their namespaces. Tells the bytes of each block.
    Raises ValueError.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: begin(
        _local(name), {_local(one): value for one, value in attributes.items()}
    )
    parser.EndElementHandler = lambda name: end(_local(name))
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = _refuse
    try:
        with book.open(part) as file:
            yield from parsed_blocks(parser, file)
    except WorkbookUnusable:
        raise
    except _DAMAGE as error:
        raise ValueError(f"the workbook is damaged: {error}") from error


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _refuse(*_: Any) -> None:
    raise WorkbookUnusable("a part of the workbook has a document type, which is not read")
