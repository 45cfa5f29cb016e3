"""The models of `independent` in Promela, as processes, so that Spin can reduce their orders.

A step is a statement, or a `d_step` where it is several. What Spin is told for its reduction is
that a channel has one reader and one writer (`xr`, `xs`).
"""

from __future__ import annotations

from collections.abc import Mapping


def workshop(constants: Mapping[str, int]) -> str:
    """Workers that share a bench."""
    process = f"""byte made;
end: do
  :: d_step {{ made < {constants["parts"]} -> made = made + 1 }}
  :: d_step {{ made == {constants["parts"]} -> made = 0 }};
     d_step {{ !taken -> taken = 1 }};
     taken = 0
  od"""
    return _model("bit taken;", [process] * constants["workers"])


def track(constants: Mapping[str, int]) -> str:
    """Runners that have nothing to do with each other."""
    laps = constants["laps"]
    process = f"byte done; end: do :: d_step {{ done < {laps} -> done = done + 1 }} od"
    return _model("", [process] * constants["runners"])


def ring(constants: Mapping[str, int]) -> str:
    """The election of Chang and Roberts."""
    members = constants["members"]
    queues = "\n".join(f"chan q_{n} = [{members}] of {{ byte }};" for n in range(members))
    processes = []
    for n in range(members):
        here, there = f"q_{n}", f"q_{(n + 1) % members}"
        processes.append(f"""byte mode, item; xr {here}; xs {there};
{there} ! {n};
end: do
  :: d_step {{ nempty({here}) && mode != 2 -> {here} ? item;
       if
       :: item > {n} -> {there} ! item; mode = 1
       :: item < {n} && mode == 1 -> {there} ! item
       :: item < {n} && mode == 0
       :: item == {n} -> assert({n} == {members - 1}); mode = 2
       fi; item = 0 }}
  od""")
    return _model(queues, processes)


def table(constants: Mapping[str, int]) -> str:
    """Philosophers around a table."""
    places = constants["places"]
    processes = []
    for n in range(places):
        left, right = f"fork[{n}]", f"fork[{(n + 1) % places}]"
        processes.append(f"""end: do
  :: d_step {{ !{left} -> {left} = 1 }};
end_holding: d_step {{ !{right} -> {right} = 1 }};
     d_step {{ {left} = 0; {right} = 0 }}
  od""")
    return _model(f"bit fork[{places}];", processes)


def filter_lock(constants: Mapping[str, int]) -> str:
    """Peterson's mutual exclusion of several processes."""
    count = constants["processes"]
    processes = []
    for n in range(count):
        below = " && ".join(f"level[{other}] < level[{n}]" for other in range(count) if other != n)
        may_go_on = f"(last[level[{n}] - 1] != {n} || ({below}))"
        processes.append(f"""end: do
  :: level[{n}] = 1;
     do
     :: last[level[{n}] - 1] = {n};
        if
        :: d_step {{ level[{n}] < {count - 1} && {may_go_on} -> level[{n}] = level[{n}] + 1 }}
        :: d_step {{ level[{n}] == {count - 1} && {may_go_on} ->
             inside = inside + 1; assert(inside == 1) }}; break
        fi
     od;
     atomic {{ level[{n}] = 0; inside = inside - 1 }}
  od""")
    return _model(f"byte level[{count}], last[{count}], inside;", processes)


def _model(shared: str, processes: list[str]) -> str:
    bodies = [f"active proctype process_{n}() {{ {text} }}" for n, text in enumerate(processes)]
    return "\n".join([shared, *bodies, ""])
