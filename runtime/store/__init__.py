"""Stores of completed checkpoints: the contract, a directory, and memory for tests."""

from __future__ import annotations

from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.contract import CheckpointStore, StoredInfo
from epochgate.runtime.store.directory import DirectoryCheckpointStore, checkpoint_file_name
from epochgate.runtime.store.encoding import decode_checkpoint, encode_checkpoint
from epochgate.runtime.store.errors import (
    CheckpointDamaged,
    CheckpointFormatUnknown,
    CheckpointIdNotIncreasing,
    CheckpointNotFound,
    CheckpointNotStorable,
    CheckpointOfAnotherJob,
    CheckpointOutcomeUnknown,
    CheckpointSaveFailed,
    CheckpointStoreClosed,
    CheckpointStoreError,
    CheckpointStoreFull,
    CheckpointStoreInUse,
    CheckpointStoreLost,
    CheckpointStoreUnusable,
    NoWholeCheckpoint,
)
from epochgate.runtime.store.memory import CheckpointShelf, InMemoryCheckpointStore
from epochgate.runtime.store.objects import ObjectCheckpointStore

__all__ = [
    "CheckpointDamaged",
    "CheckpointFormatUnknown",
    "CheckpointIdNotIncreasing",
    "CheckpointNotFound",
    "CheckpointNotStorable",
    "CheckpointOfAnotherJob",
    "CheckpointOutcomeUnknown",
    "CheckpointSaveFailed",
    "CheckpointShelf",
    "CheckpointStore",
    "CheckpointStoreClosed",
    "CheckpointStoreError",
    "CheckpointStoreFull",
    "CheckpointStoreInUse",
    "CheckpointStoreLost",
    "CheckpointStoreUnusable",
    "CompletedCheckpoint",
    "DirectoryCheckpointStore",
    "InMemoryCheckpointStore",
    "NoWholeCheckpoint",
    "ObjectCheckpointStore",
    "StoredInfo",
    "checkpoint_file_name",
    "decode_checkpoint",
    "encode_checkpoint",
]
