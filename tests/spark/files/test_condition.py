"""Conditions on rows as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.spark.files.condition import Comparison, ConditionWrong, parse_condition


@pytest.mark.parametrize(
    ("text", "comparisons"),
    [
        ("a=1", [("a", "=", 1)]),
        ("a >= -2.5 and b < .5e3", [("a", ">=", -2.5), ("b", "<", 500.0)]),
        ("name = 'it''s'", [("name", "=", "it's")]),
        ("`a b` = TRUE AND c > false", [("a b", "=", True), ("c", ">", False)]),
        ("a IN (1, :two)", [("a", "IN", [1, 2])]),
        ("a in :some AND a <= :two", [("a", "IN", ["x", "y"]), ("a", "<=", 2)]),
        ("a = :unset AND b = :two", [("b", "=", 2)]),
        ("a IN :unset", []),
    ],
)
def test_comparisons_have_the_values_of_their_parameters_and_none_takes_one_out(
    text: str, comparisons: list[tuple[str, str, Any]]
) -> None:
    values = {"two": 2, "some": ["x", "y"], "unset": None}
    assert parse_condition(text).bound(values) == tuple(Comparison(*one) for one in comparisons)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it ends where a column should be"),
        ("a >", "it ends where a value should be"),
        ("a != 1", "'!=' stands where an operator should be"),
        ("a = 1 OR b = 2", "'OR' stands where AND should be"),
        ("a = b", "'b' stands where a value should be"),
        ("a IN (1, 2", r"it ends where \) should be"),
        ("a IN 1", r"'1' stands where :NAME or \( should be"),
        ("a = 'open", '"\'" stands where a value should be'),
        ("a = 1; drop", "';' stands where AND should be"),
        ("1 = a", "'1' stands where a column should be"),
    ],
)
def test_a_text_that_is_no_condition_is_refused_with_what_should_stand_where(
    text: str, told: str
) -> None:
    with pytest.raises(ConditionWrong, match=told):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ("a = :limit", {"least": 1}, "there is no value 'limit' among least"),
        ("a = :limit", {"limit": [1]}, r"a = takes one value, and has \[1\]"),
        ("a IN :limit", {"limit": 1}, "a IN takes a list, and has 1"),
    ],
)
def test_values_that_do_not_suit_are_refused(text: str, values: dict[str, Any], told: str) -> None:
    with pytest.raises(ConditionWrong, match=told):
        parse_condition(text).bound(values)
