"""A Delta table in an object store as another client than the sink's sees it: Arrow's, in C++."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.fs

from tests.runtime.objects.servers import BUCKET, KEY, SECRET
from tests.spark.tables import delta_replay

PATIENCE_S = 30.0


class Seen:
    """The table below `name` in the bucket of the server; copied to `place` to be read."""

    def __init__(
        self, server: dict[str, str], name: str, place: Path, bucket: str = BUCKET
    ) -> None:
        self._server, self._folder, self._bucket = server, place, bucket
        self.url, self._name, self._place = f"s3://{bucket}/{name}", name, place / "seen" / name
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
        """A directory with the log's entries and the files that they name; what is there already is
        not read again.
        """
        entries = [one for one in self.files("_delta_log") if one.endswith(".json")]
        for key in entries:
            self.copy(key, self._place)
        for key in {str(p.relative_to(self._place)) for p in self._place.glob("_delta_log/*")}:
            if key not in entries:
                (self._place / key).unlink()
        for file in delta_replay.active_files(self._place):
            self.copy(str(file.relative_to(self._place)), self._place)
        return self._place

    def copy(self, key: str, place: Path) -> None:
        """Copy an object to its place below this one, unless that was done."""
        copy, until_s = place / key, time.monotonic() + PATIENCE_S
        copy.parent.mkdir(parents=True, exist_ok=True)
        while not copy.exists():
            try:
                copy.write_bytes(self.read(key))
            except OSError:  # a server that begins again is not whole at once
                if time.monotonic() > until_s:
                    raise
                time.sleep(0.1)

    def files(self, folder: str = "") -> list[str]:
        """The keys below a folder of the table."""
        root = f"{self._bucket}/{self._name}/"
        found = self.client.get_file_info(
            pyarrow.fs.FileSelector(f"{root}{folder}", recursive=True, allow_not_found=True)
        )
        return sorted(one.path.removeprefix(root) for one in found if one.is_file)

    def read(self, key: str) -> bytes:
        """The object."""
        with self.client.open_input_stream(f"{self._bucket}/{self._name}/{key}") as stream:
            content: bytes = stream.read()
        return content

    def remove(self) -> None:
        """Remove all that is there."""
        self.client.delete_dir_contents(f"{self._bucket}/{self._name}", missing_dir_ok=True)

    def rows(self, column: str = "x") -> list[Any]:
        """All values of a column that the log shows."""
        return delta_replay.rows(self.copied(), column)

    def numbers(self, application: str) -> list[int]:
        """Return what the log says of an application."""
        return delta_replay.numbers(self.copied(), application)
