"""A listener that raises or hangs changes nothing for its job."""

from __future__ import annotations

import threading

import pytest

from epochgate.runtime import JobEvent, JobListener, JobReport
from epochgate.runtime.observing.own_thread import OnOwnThread
from epochgate.runtime.testing.scripted import Script
from tests.runtime import doors
from tests.runtime.at_door import Door
from tests.runtime.hung import EndingTask, Hung
from tests.runtime.scripted import Script as RecordingScript, simulated


class Deaf(JobListener):
    def on_event(self, event: JobEvent) -> None: ...


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.LISTENER)
def test_what_a_listener_raises_is_logged_with_type_file_and_line(
    door: str, raised: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    at = Door(door, raised)
    job = simulated(RecordingScript(), listeners=[at.of(Deaf, "listener")()])
    job.settle()
    job.master.cancel()
    job.settle(until=lambda: job.is_over)
    job.master.close()
    assert job.result.state == "canceled"
    assert at.has_raised
    assert raised.__name__ in caplog.text
    assert 'at_door.py", line ' in caplog.text


class Hanging(JobListener):
    def __init__(self, method: str, go: threading.Event) -> None:
        self._method, self._go = method, go

    def _at(self, method: str) -> None:
        if method == self._method:
            self._go.wait()

    def begin(self, report: JobReport) -> None:
        self._at("begin")

    def on_event(self, event: JobEvent) -> None:
        self._at("on_event")

    def close(self) -> None:
        self._at("close")


@pytest.mark.parametrize("door", doors.LISTENER)
def test_a_listener_that_hangs_is_left_behind(door: str, caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()
    listener = OnOwnThread(Hanging(door.removeprefix("listener."), go), patience_s=0.2)
    job = Hung(Script(), listeners=[listener], task=EndingTask)
    assert job.loop.join(10).state == "finished"
    go.set()
    assert "the listener Hanging is not done 0.2 s after the job's end" in caplog.text
