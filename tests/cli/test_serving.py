"""A server of pages tells a fault of its own from a bad request, and goes on after both."""

from __future__ import annotations

import pytest

from epochgate.errors import UsageError
from epochgate.pages.serving import HTML, Answer, Request
from tests.browser.serving import asked, served


def answer(request: Request) -> Answer:
    if request.path == "/fault":
        raise ValueError("a mistake in an answer")
    if request.path == "/bad":
        raise UsageError("write another value")
    return Answer("fine", HTML)


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [("/fault", 500, "a fault of epochgate"), ("/bad", 400, "write another value")],
)
def test_a_fault_is_not_told_as_a_bad_request(
    path: str, status: int, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(answer) as url:
        found, text, _ = asked(url, path)
        assert (found, told in text) == (status, True)
        assert ("ValueError: a mistake in an answer" in capfd.readouterr().err) == (status == 500)
        assert asked(url, "/")[0] == 200
