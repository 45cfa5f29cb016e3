"""Steering a streaming query: what each batch runs with, decided once and kept in a store."""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
