"""A Delta table in an object store as another client than the sink's sees it: Arrow's, in C++."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.fs

from tests.runtime.objects.servers import BUCKET, KEY, SECRET
from tests.spark.tables import delta_replay


class Seen:
    """The table below `name` in the bucket of the server; copied to `place` to be read."""

    def __init__(self, server: dict[str, str], name: str, place: Path) -> None:
        self._server, self._folder = server, place
        self.url, self._name, self._place = f"s3://{BUCKET}/{name}", name, place / "seen" / name
        self.client = pyarrow.fs.S3FileSystem(
            endpoint_override=server["AWS_ENDPOINT_URL"].removeprefix("http://"),
            scheme="http",
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
        )

    def beside(self, ending: str) -> Seen:
        """The table whose name ends like this, too."""
        return Seen(self._server, f"{self._name}{ending}", self._folder)

    def copied(self) -> Path:
        """A directory with all that is there now."""
        shutil.rmtree(self._place, ignore_errors=True)
        if self.files():
            pyarrow.fs.copy_files(
                f"{BUCKET}/{self._name}", str(self._place), source_filesystem=self.client
            )
        return self._place

    def files(self, folder: str = "") -> list[str]:
        """The keys below a folder of the table."""
        root = f"{BUCKET}/{self._name}/"
        found = self.client.get_file_info(
            pyarrow.fs.FileSelector(f"{root}{folder}", recursive=True, allow_not_found=True)
        )
        return sorted(one.path.removeprefix(root) for one in found if one.is_file)

    def remove(self) -> None:
        """Remove all that is there."""
        self.client.delete_dir_contents(f"{BUCKET}/{self._name}", missing_dir_ok=True)

    def rows(self, column: str = "x") -> list[Any]:
        """All values of a column that the log shows."""
        return delta_replay.rows(self.copied(), column)

    def numbers(self, application: str) -> list[int]:
        """Return what the log says of an application."""
        return delta_replay.numbers(self.copied(), application)
