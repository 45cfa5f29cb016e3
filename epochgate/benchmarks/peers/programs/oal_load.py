"""Loads the new files of a folder into a Delta table by open-auto-loader; run by the Python of its
environment: KIND FOLDER TABLE STATE.
"""

from __future__ import annotations

import sys
import uuid

from open_auto_loader import OpenAutoLoader  # type: ignore[import-not-found]  # see dlt_load.py


def main(kind: str, folder: str, table: str, state: str) -> None:
    """Load what is not marked in the database of `state`."""
    OpenAutoLoader(
        source=folder,
        target=table,
        check_point=state,
        schema_path=f"{state}/schema.json",
        format_type=kind,
    ).run(batch_id=uuid.uuid4().hex)


if __name__ == "__main__":
    main(*sys.argv[1:])
