"""The names of the certification of sinks, and where they are defined."""

from epochgate.runtime.testing.certification.asserting import (
    SinkNotCertified as SinkNotCertified,
    certify_sink as certify_sink,
)
from epochgate.runtime.testing.certification.case import (
    CaseMisused as CaseMisused,
    Row as Row,
    SinkCase as SinkCase,
)
from epochgate.runtime.testing.certification.certifying import (
    Certificate as Certificate,
    Failure as Failure,
    certify as certify,
)
from epochgate.runtime.testing.certification.claims import (
    Broken as Broken,
    Guarantee as Guarantee,
)
from epochgate.runtime.testing.certification.clients import UnknownClient as UnknownClient
from epochgate.runtime.testing.certification.junit import to_junit as to_junit
from epochgate.runtime.testing.certification.reporting import report as report, to_json as to_json
