"""`epochgate ui`: the pages of a job, running or ended, from the history beside its checkpoints."""

from __future__ import annotations

import argparse
import sys
import threading
from contextlib import ExitStack

from epochgate.commands.configuration import is_configuration, jobs_in
from epochgate.exit_codes import codes_of

HELP = "show a job in the browser, running or ended"
DESCRIPTION = """\
Answer pages of a job at a loopback address: its checkpoints with duration and size,
attempts and failovers on an axis of time, throughput, backlog and rejected rows,
earlier starts, and the controls of streaming queries. Scripts read the same as
JSON in the shape of Flink's REST interface. The command reads what
`epochgate status` reads, and writes nothing."""

EPILOG = f"""\
examples:
  epochgate ui table                     of `epochgate ingest incoming table`
  epochgate ui s3://jobs/orders          of a job's checkpoints in an object store
  epochgate ui jobs.toml                 each job of a file of `ingest --config`,
                                         on ports one after the other
  epochgate ui table --controls controls beside it, which batch ran with what
  curl http://127.0.0.1:7358/jobs        JSON, as from Flink

{codes_of("ui")}"""

PORT = 7358


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add("directory", metavar="DIR", help="the same as for `epochgate status`")
    add(
        "--controls",
        default="",
        metavar="STORE",
        help="the directory or URL of controls, as for `epochgate control`",
    )
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="listen on another address; all who reach it may read everything (default: 127.0.0.1)",
    )
    add(
        "--port",
        type=int,
        default=PORT,
        metavar="PORT",
        help=f"port of the pages (default: {PORT}); 0 takes any free one",
    )


def run(arguments: argparse.Namespace) -> int:
    """Answer until the user interrupts it."""
    from epochgate.jobs.seen import Job
    from epochgate.jobs.site import JobSite
    from epochgate.pages.serving import Server
    from epochgate.runtime.observing.status import NothingToSee

    places = [arguments.directory]
    if is_configuration(arguments.directory):
        places = list(jobs_in(arguments.directory).values())
    servers: list[Server] = []
    for place in places:
        job = Job(place)
        try:
            state = job.status().state
        except NothingToSee as error:
            if len(places) == 1:
                raise
            print(f"{place}: {error}", file=sys.stderr)
            continue
        port = arguments.port + len(servers) if arguments.port else 0
        servers.append(Server(JobSite(job, arguments.controls).answer, arguments.host, port))
        print(f"{place} ({state}) at {servers[-1].url} (Ctrl-C ends it)", flush=True)
    if not servers:
        raise NothingToSee(f"no job of {arguments.directory} has begun yet")
    with ExitStack() as stack:
        for server in servers[:-1]:
            threading.Thread(target=server.run, daemon=True).start()
            stack.callback(server.close)
        servers[-1].run_until_interrupted()
    return 0
