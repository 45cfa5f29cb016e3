"""HTML pages that need no other file and no network, and one style for all of them.

Decides how a page is made: a template beside this file, filled in by Jinja2, which escapes every
value; styles and scripts are put into the page, and a policy in it forbids browsers to fetch
anything else. Templates name values that are there, or the rendering fails. What a page tells is
decided by those who call `page`; a template only lays it out.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from epochgate.runtime.api.reports import size
from epochgate.runtime.durations import clock, span

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
SERVED_POLICY: Final = POLICY.replace("form-action 'none'", "form-action 'self'")
"""Of a page that a server of this package answers with, whose forms ask it for more."""


def page(template: str, **values: Any) -> str:
    """Return the page that a template of this folder makes of the values."""
    return _environment().get_template(template).render(**values)


def seconds(value: float) -> str:
    """A duration for a reader, shorter ones than a second in milliseconds.

    >>> seconds(0.0004), seconds(0.25), seconds(75)
    ('0.4 ms', '250 ms', '1 min 15 s')
    """
    if value >= 1:
        return span(value)
    return f"{value * 1000:.0f} ms" if value >= 0.01 else f"{max(value, 0.0) * 1000:.1f} ms"


def figure(value: object) -> str:
    """A number with separators; anything else as it is.

    >>> figure(1234567), figure(0.5), figure("so")
    ('1,234,567', '0.5', 'so')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(_text_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # in the order of the values
    made.globals |= {"policy": POLICY, "inlined": _inlined}
    made.filters |= {
        "seconds": seconds,
        "clock": clock,
        "span": span,
        "figure": figure,
        "size": size,
    }
    return made


def _text_of(name: str) -> str:
    return files("epochgate.pages").joinpath(name).read_text(encoding="utf-8")


def _inlined(name: str) -> Markup:
    """A style or a script of this folder, for the element that it is put into."""
    from markupsafe import Markup

    return Markup(_text_of(name))
