"""A certificate as JUnit XML, which CI servers show beside the results of tests.

One test case for each fault point and guarantee, and one for each group of schedules without a
fault point; a failure has the shortest schedule that shows it. A guarantee that was not tried is a
case that was skipped, and one that failed where nothing was seen inside `commit`. The form is that
of the schema of Jenkins' xUnit plugin, which others read too. Characters that XML cannot hold are
written as escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from epochgate.runtime.testing.certification.certifying import Certificate, Group
from epochgate.runtime.testing.certification.claims import Guarantee
from epochgate.runtime.testing.certification.reporting import shown, why_untried

SUITE: Final = "epochgate certify-sink"
DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>'
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(certificate: Certificate) -> str:
    """Return the document."""
    groups = list(certificate.groups.values())
    untried = [
        guarantee
        for guarantee in Guarantee
        if not certificate.tried.get(guarantee)
        and guarantee not in certificate.failures
        and guarantee not in certificate.untried
    ]
    unseen = certificate.untried
    figures = {
        "tests": str(len(groups) + len(untried) + len(unseen)),
        "failures": str(len(unseen) + sum(one.failure is not None for one in groups)),
        "errors": "0",
        "time": _seconds(certificate.seconds),
    }
    document = ElementTree.Element("testsuites", {"name": SUITE, **figures})
    suite = ElementTree.SubElement(
        document,
        "testsuite",
        {"name": _text(certificate.name), **figures, "skipped": str(len(untried))},
    )
    sink = f"{certificate.module}.{certificate.name}".lstrip(".")
    for one in groups:
        _add_case(suite, sink, one)
    for guarantee in untried:
        case = _case(suite, sink, Group(guarantee, "not tried"))
        reason = f"not tried: {why_untried(certificate, guarantee)}"
        ElementTree.SubElement(case, "skipped", {"message": _text(reason)})
    for guarantee, reason in unseen.items():
        case = _case(suite, sink, Group(guarantee, "not tried"))
        told = {"type": _text(guarantee.title), "message": _text(f"not tried: {reason}")}
        ElementTree.SubElement(case, "failure", told)
    ElementTree.indent(document)
    return f"{DECLARATION}\n{ElementTree.tostring(document, encoding='unicode')}\n"


def _add_case(suite: ElementTree.Element, sink: str, group: Group) -> None:
    case = _case(suite, sink, group)
    if group.failure is not None:
        broken = group.failure.broken
        failure = ElementTree.SubElement(
            case,
            "failure",
            {"type": _text(broken.guarantee.title), "message": _text(broken.finding)},
        )
        count = f"  failed    {group.failure.schedules} of {group.schedules} schedules here"
        failure.text = _block([broken.guarantee.sentence, count, *shown(group.failure)])
    if group.warning is not None:
        remark = ElementTree.SubElement(case, "system-out")
        title = group.warning.broken.guarantee.title
        remark.text = _block([f"warning: {title}", *shown(group.warning)])


def _case(suite: ElementTree.Element, sink: str, group: Group) -> ElementTree.Element:
    told = {
        "classname": _text(f"{sink}.{group.guarantee.title}"),
        "name": _text(group.name),
        "time": _seconds(group.seconds),
    }
    return ElementTree.SubElement(suite, "testcase", told)


def _block(lines: Sequence[str]) -> str:
    return _text("\n".join(["", *lines, ""]))


def _text(text: str) -> str:
    """The text without what XML cannot hold, such as the zero character of a damaged row."""
    return _NOT_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"
