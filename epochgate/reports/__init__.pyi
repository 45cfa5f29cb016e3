"""The names of `epochgate.reports`, and where they are defined."""

from epochgate.reports.junit import junit_xml as junit_xml
from epochgate.reports.page import html_page as html_page
from epochgate.reports.regression import pytest_module as pytest_module
from epochgate.reports.sarif import sarif_json as sarif_json
from epochgate.reports.sequence import (
    sequence_diagram as sequence_diagram,
    sequence_diagrams as sequence_diagrams,
)
