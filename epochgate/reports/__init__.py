"""The findings of a check, as files for people and for continuous integration.

Pure functions from results to text: JUnit XML, SARIF, a Mermaid sequence diagram, an HTML page, a
pytest file.
Nothing here explores, prints or writes a file; what a terminal shows is `fsm.checker.report`.
Names are imported when they are first used: a test of the runtime imports every machine of it.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
