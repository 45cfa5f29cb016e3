"""A coordinator together with its operator in every task of a pipeline.

Source: Apache Flink's CoordinatedOperatorFactory, which also makes both.
"""

from __future__ import annotations

from abc import abstractmethod

from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import Operator


class CoordinatedOperator(CoordinatorProvider):
    """Creates a coordinator and its operator, which share the operator id. It is pickled and sent
    to the tasks.
    """

    @abstractmethod
    def create_operator(self) -> Operator:
        """Create the operator of one attempt, in its task."""
