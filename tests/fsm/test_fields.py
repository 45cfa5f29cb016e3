"""A channel keeps its order, and a declared field becomes a plain value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.fsm import Fifo
from epochgate.fsm.fields import ArrayField, BoolField, FifoField, IntField


def filled(*items: int) -> Fifo[int]:
    fifo = Fifo[int]()
    for item in items:
        fifo.push(item)
    return fifo


def test_items_leave_in_the_order_in_which_they_came() -> None:
    fifo = filled(1, 2, 3)
    assert (fifo.size(), fifo.empty(), fifo.head()) == (3, False, 1)
    assert [fifo.pop(), fifo.pop(), fifo.pop()] == [1, 2, 3]
    assert fifo.empty()


@pytest.mark.parametrize("operation", ["pop", "head"])
def test_an_empty_channel_has_no_first_item(operation: str) -> None:
    with pytest.raises(IndexError):
        getattr(Fifo[int](), operation)()


def test_draining_appends_in_order_and_empties_the_other() -> None:
    first, second = filled(1, 2), filled(3, 4)
    first.drain(second)
    assert (list(first), list(second)) == ([1, 2, 3, 4], [])


def test_taking_all_leaves_what_is_pushed_meanwhile() -> None:
    fifo = filled(1, 2)
    for item in fifo.take_all():
        fifo.push(item * 10)
    assert list(fifo) == [10, 20]


def test_clearing_and_printing() -> None:
    fifo = filled(1, 2)
    assert repr(fifo) == "Fifo([1, 2])"
    fifo.clear()
    assert fifo.empty()


@settings(max_examples=100, derandomize=True, database=None)
@given(st.lists(st.one_of(st.integers(), st.sampled_from(["pop", "clear", "rotate"]))))
def test_a_channel_behaves_like_a_list(operations: list[int | str]) -> None:
    fifo, model = Fifo[int | str](), list[int | str]()
    for operation in operations:
        if operation == "pop":
            if model:
                assert fifo.pop() == model.pop(0)
        elif operation == "clear":
            fifo.clear()
            model.clear()
        elif operation == "rotate":
            for item in fifo.take_all():
                fifo.push(item)
        else:
            fifo.push(operation)
            model.append(operation)
        assert list(fifo) == model
        assert (fifo.size(), fifo.empty()) == (len(model), not model)


def test_fresh_values_begin_where_the_declaration_says() -> None:
    constants = {"rows": 2, "columns": 3}
    assert IntField("n", start=4).fresh(constants) == 4
    assert BoolField(start=True).fresh(constants) is True
    grid = ArrayField(ArrayField(IntField("n"), "columns"), "rows").fresh(constants)
    assert grid == [[0, 0, 0], [0, 0, 0]]
    grid[0][0] = 1
    assert grid[1][0] == 0
    channels = ArrayField(FifoField("x", 3), "rows").fresh(constants)
    assert channels[0] is not channels[1]
