"""Small workbooks, written part by part, so that each cell is as a test wants it."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
FORMATS = ("General", "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "hh:mm:ss", "[h]:mm:ss", '0.00" d"')
"""The formats of styles 0, 1, and so on."""


def relations(of: Mapping[str, tuple[str, str]]) -> str:
    body = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in of.items()
    )
    return f'<Relationships xmlns="{PACKAGE}">{body}</Relationships>'


def cell(place: str, text: str, kind: str = "n", style: int = 0) -> str:
    return f'<c r="{place}" t="{kind}" s="{style}"><v>{escape(text)}</v></c>'


def sheet(rows: Mapping[int, Sequence[str]]) -> str:
    body = "".join(f'<row r="{number}">{"".join(cells)}</row>' for number, cells in rows.items())
    return f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>'


def write_workbook(
    path: Path,
    sheets: Mapping[str, str],
    texts: Sequence[str] = (),
    *,
    is_1904: bool = False,
) -> Path:
    """`sheets`: the XML of each by its name; `texts`: the shared ones, as XML."""
    named = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="s{number}"/>'
        for number, name in enumerate(sheets, 1)
    )
    book = (
        f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><workbookPr date1904="{int(is_1904)}"/>'
        f"<sheets>{named}</sheets></workbook>"
    )
    own = "".join(
        f'<numFmt numFmtId="{170 + number}" formatCode={quoteattr(code)}/>'
        for number, code in enumerate(FORMATS)
    )
    xfs = "".join(f'<xf numFmtId="{170 + number}"/>' for number in range(len(FORMATS)))
    styles = (
        f'<styleSheet xmlns="{MAIN}"><numFmts>{own}</numFmts><cellXfs>{xfs}</cellXfs></styleSheet>'
    )
    parts = {
        f"s{number}": ("worksheet", f"worksheets/sheet{number}.xml")
        for number in range(1, len(sheets) + 1)
    }
    parts |= {"t": ("sharedStrings", "sharedStrings.xml"), "f": ("styles", "/xl/styles.xml")}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", relations({"r1": ("officeDocument", "xl/workbook.xml")}))
        archive.writestr("xl/workbook.xml", book)
        archive.writestr("xl/_rels/workbook.xml.rels", relations(parts))
        archive.writestr("xl/styles.xml", styles)
        shared = "".join(f"<si>{text}</si>" for text in texts)
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{shared}</sst>')
        for number, text in enumerate(sheets.values(), 1):
            archive.writestr(f"xl/worksheets/sheet{number}.xml", text)
    return path
