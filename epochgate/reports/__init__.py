"""What a check found, as files for people and for continuous integration.

Pure functions from results to text: JUnit XML, SARIF, a Mermaid sequence diagram, an HTML page, a
pytest file.
Nothing here explores, prints or writes a file; what a terminal shows is `fsm.checker.report`.
"""

from epochgate.reports.junit import junit_xml
from epochgate.reports.page import html_page
from epochgate.reports.regression import pytest_module
from epochgate.reports.sarif import sarif_json
from epochgate.reports.sequence import sequence_diagram, sequence_diagrams

__all__ = [
    "html_page",
    "junit_xml",
    "pytest_module",
    "sarif_json",
    "sequence_diagram",
    "sequence_diagrams",
]
