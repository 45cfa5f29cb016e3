"""The sink, frames, `once`, a control and one with a coordinator through a server of Spark Connect,
which pyspark brings: `python connect_program.py ROOT`. Writes what it has seen as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from epochgate.runtime.steering import QueryUnknown
from epochgate.spark.streaming import Control, DirectoryLedger, NoQuery, once, register
from tests.spark.streaming.coordinated_program import control_in
from tests.spark.streaming.queries import Numbers

STARTS = 6
"""On a busy machine a worker of the server misses Spark's ten seconds."""


def main(root: Path) -> None:
    spark: Any = SparkSession.builder.remote("local[2]").getOrCreate()
    register(spark)
    query = Numbers(root, "delta")
    query.add_files(2)
    seen: dict[str, Any] = {"batches": [query.run(spark)]}
    query.forget_end(1)
    query.add_files(1)
    seen["batches"].append(query.run(spark))
    seen["is_once"] = query.rows() == query.expected

    target = str(root / "frames")
    writer = spark.range(3).write.format("epochgate").option("sink", "parquet")
    writer.mode("append").save(target)
    seen["frames"] = spark.read.parquet(target).count()

    seen |= guarded_calls(root, spark, query)
    seen |= steered_batches(root, spark, query)
    seen |= chosen_batches(root / "coordinated", spark)
    (root / "seen.json").write_text(json.dumps(seen))
    spark.stop()


def guarded_calls(root: Path, spark: Any, query: Numbers) -> dict[str, Any]:
    """Return what `once` calls a function for, also when a batch runs again."""
    sums, checkpoint = str(root / "sums"), root / "of_sums"

    def add_up(df: Any, batch: int) -> None:
        df.groupBy().sum("id").write.mode("append").json(sums)

    ledger = DirectoryLedger(str(root / "ledger"))
    guarded = once(ledger, add_up, query="sums", checkpoint=str(checkpoint))
    calls = [run(query, spark, guarded, checkpoint)]
    forget_end(checkpoint, 2)
    calls.append(run(query, spark, guarded, checkpoint))
    lines = [line for file in Path(sums).glob("*.json") for line in file.read_text().split()]
    query.add_files(1)
    told = refusal(query, spark, once(ledger, add_up), checkpoint)
    return {"calls": calls, "sums": sorted(lines), "without a name": NoQuery.__name__ in told}


def steered_batches(root: Path, spark: Any, query: Numbers) -> dict[str, Any]:
    """Return what a control gives to batches, one of which runs again behind an update of the
    client.
    """
    out, checkpoint = root / "steered", root / "of_steered"
    control = Control("pricing", {"limit": 900}, store=str(root / "controls"))

    def write(df: Any, batch: int, values: dict[str, Any]) -> None:
        marked = df.selectExpr("id", f"{values['limit']} as of")
        marked.write.mode("overwrite").json(str(out / str(batch)))

    steered = control.apply(write, checkpoint=str(checkpoint))
    batches = [run(query, spark, steered, checkpoint)]
    last = batches[0][-1]
    control.update(limit=700)
    forget_end(checkpoint, last)
    query.add_files(1)
    batches.append(run(query, spark, steered, checkpoint))
    limits = limits_in(out)
    query.add_files(1)
    told = refusal(query, spark, control.apply(write), checkpoint)
    metrics = control.metrics()
    return {
        "steered": batches,
        "limits": limits,
        "in force from": control.effective_from(),
        "metrics": {name: metrics[name] for name in ("decisions_kept", "pending", "updated")},
        "without a checkpoint": QueryUnknown.__name__ in told,
    }


def chosen_batches(folder: Path, spark: Any) -> dict[str, Any]:
    """Return what a coordinator, which lives in the server's worker, chooses for batches of which
    one runs again in another worker.
    """
    query, control = Numbers(folder, "delta"), control_in(folder)
    query.add_files(2)

    def write(df: Any, batch: int, values: dict[str, Any]) -> int:
        marked = df.selectExpr("id", f"{values['limit']} as of")
        marked.write.mode("overwrite").json(str(query.target / str(batch)))
        rows: int = df.count()
        return rows

    chosen = control.apply(write, checkpoint=str(query.checkpoint))
    batches = [run(query, spark, chosen, query.checkpoint)]
    query.forget_end(1)
    query.add_files(1)
    batches.append(run(query, spark, chosen, query.checkpoint))
    return {
        "chosen": batches,
        "chosen limits": limits_in(query.target),
        "decided limits": [one.value["limit"] for one in control.history()],
        "calls of the coordinator": [
            call
            for call, _ in map(json.loads, (folder / "calls").read_text().splitlines())
            if call[0] in ("start", "choose")
        ],
    }


def limits_in(out: Path) -> list[list[int]]:
    """Those of the rows of each batch, in the order of batches."""
    return [
        sorted({json.loads(line)["of"] for file in of.glob("*.json") for line in file.open()})
        for of in sorted(out.iterdir())
    ]


def run(query: Numbers, spark: Any, function: Any, checkpoint: Path) -> list[int]:
    """Run a function of `foreachBatch` until all files are processed: the batches."""
    batches = query.frame(spark).writeStream.foreachBatch(function)
    batches = batches.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    started = start(batches)
    started.awaitTermination()
    return [progress["batchId"] for progress in started.recentProgress]


def refusal(query: Numbers, spark: Any, function: Any, checkpoint: Path) -> str:
    """Return what the run fails with."""
    try:
        run(query, spark, function, checkpoint)
    except PySparkException as error:
        return str(error)
    return ""


def forget_end(checkpoint: Path, batch: int) -> None:
    """Let Spark's log of commits lack the batch, as if the server had died before."""
    for file in (checkpoint / "commits").glob(f"*{batch}*"):
        file.unlink()


def start(writer: Any) -> Any:
    """Start it, again where a worker of the server has come too late."""
    for _ in range(STARTS - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if "failed to connect back" not in str(error):
                raise
    return writer.start()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
