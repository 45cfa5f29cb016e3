"""Certification as an assertion, for a test of one's own."""

from __future__ import annotations

from epochgate.runtime.testing.certification.case import SinkCase
from epochgate.runtime.testing.certification.certifying import Certificate, certify
from epochgate.runtime.testing.certification.reporting import report


class SinkNotCertified(AssertionError):
    """A guarantee does not hold. The message is the report, `certificate` holds its values."""

    def __init__(self, certificate: Certificate) -> None:
        super().__init__(f"{certificate.name} is not certified\n\n{report(certificate)}")
        self.certificate = certificate


def certify_sink(case: SinkCase, *, allows_leftovers: bool = False, stride: int = 1) -> Certificate:
    """Certify the sink of a case. Raise SinkNotCertified with the shortest failing schedule.

    `allows_leftovers`: staged data that outlives the job is a warning and no failure. `stride`:
    play every n-th schedule only, for a quick test.
    """
    certificate = certify(case, allows_leftovers=allows_leftovers, stride=stride)
    if not certificate.has_passed:
        raise SinkNotCertified(certificate)
    return certificate
