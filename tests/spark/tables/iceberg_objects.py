"""Iceberg tables in an object store, of an SQL and of a REST catalog, as another client than the
library sees them: Arrow's in C++, a few lines of Avro, and requests by hand.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pyarrow.parquet as pq

from epochgate.benchmarks import object_server
from epochgate.environment import set_in_environment
from tests.runtime.objects.servers import BUCKET, KEY, SECRET, seaweedfs
from tests.spark.tables import iceberg_replay
from tests.spark.tables.delta_objects import Seen

TABLES = "tables"
METADATA = ".metadata.json"
NOT_FOUND = 404

Kind = Literal["sql", "rest"]


@dataclass
class Server:
    """An object store and a REST catalog; `made`: how many tables there are."""

    variables: dict[str, str]
    rest: str
    made: int = 0


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Run both, with the variables of their clients in the environment."""
    rest, *on = object_server.ports(object_server.PORTS + 1)
    with seaweedfs(folder, on, rest) as variables, set_in_environment(variables):
        object_server.make_table_bucket(folder, on, TABLES)
        yield Server(variables, f"http://127.0.0.1:{rest}")


class Lake:
    """A catalog, with a warehouse in a bucket, and one table of it."""

    def __init__(self, server: Server, kind: Kind, place: Path) -> None:
        server.made += 1
        self.place, self._rest = place, server.rest
        self.table = f"sales.events{server.made}"
        if kind == "sql":
            bucket, self.name = BUCKET, f"lakes/of-{place.name}"
            found = {**iceberg_replay.catalog(place), "warehouse": f"s3://{BUCKET}/{self.name}"}
        else:
            bucket, self.name = TABLES, ""
            found = {
                "type": "rest",
                "uri": server.rest,
                "credential": f"{KEY}:{SECRET}",
                "oauth2-server-uri": f"{server.rest}/v1/oauth/tokens",
                "warehouse": f"s3://{TABLES}",
            }
        self.kind, self.properties = kind, found
        name = f"{self.name}/{self.table.replace('.', '/')}".lstrip("/")
        self.seen = Seen(server.variables, name, place, bucket)
        self._copies = place / "copies"
        iceberg_replay.PLACES[f"s3://{bucket}/{name}/"] = f"{self._copies}/"

    def environment(self, **others: str) -> dict[str, str]:
        """The variables by which the library finds the catalog `lake`; `others` instead of these
        properties.
        """
        return {
            f"PYICEBERG_CATALOG__LAKE__{key.upper().replace('-', '_')}": value
            for key, value in {**self.properties, **others}.items()
        }

    def metadata(self) -> dict[str, Any]:
        """Return what the catalog points to, and copy all that is there; {} without a table."""
        if self.kind == "sql":
            self._copy()
            return iceberg_replay.metadata(self.place, self.table) or {}
        path = f"/v1/{TABLES}/namespaces/sales/tables/{self.table[6:]}"
        try:
            location = self._asked(path)["metadata-location"].rpartition("/")[2]
        except HTTPError as error:
            if error.code == NOT_FOUND:
                return {}
            raise
        self._copy()
        found: dict[str, Any] = json.loads((self._copies / "metadata" / location).read_text())
        return found

    def active_files(self) -> list[Path]:
        """Copies of the files of the newest snapshot."""
        return iceberg_replay.files_of(iceberg_replay.history_in(self.metadata()))

    def rows(self, column: str = "x") -> list[Any]:
        """All values of a column, sorted."""
        found = (pq.read_table(file)[column].to_pylist() for file in self.active_files())
        return sorted(value for values in found for value in values)

    def _copy(self) -> None:
        for key in self.seen.files():
            if key.endswith(METADATA):  # of a REST catalog, whose names are its own matter
                (self._copies / key).unlink(missing_ok=True)
            self.seen.copy(key, self._copies)

    def _asked(self, path: str) -> dict[str, Any]:
        form = {"grant_type": "client_credentials", "client_id": KEY, "client_secret": SECRET}
        data = urlencode({**form, "scope": "catalog"}).encode()
        with urlopen(f"{self._rest}/v1/oauth/tokens", data, timeout=10) as answer:
            token = json.load(answer)["access_token"]
        request = Request(f"{self._rest}{path}", headers={"Authorization": f"Bearer {token}"})
        with urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found
