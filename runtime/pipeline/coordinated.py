"""A coordinator together with the operator that it has in every task of a pipeline.

Source: Apache Flink's CoordinatedOperatorFactory, which makes both as well.
"""

from __future__ import annotations

from abc import abstractmethod

from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import Operator


class CoordinatedOperator(CoordinatorProvider):
    """Makes both halves, which find each other by the operator id; it travels to the tasks, so it
    can be pickled.
    """

    @abstractmethod
    def create_operator(self) -> Operator:
        """In a task: the operator of one attempt."""
