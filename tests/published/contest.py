"""Nets of the Model Checking Contest, as data."""

from __future__ import annotations

from itertools import combinations, permutations, product

from tests.published.nets import Net, bag


def philosophers(n: int) -> Net:
    """A philosopher takes one fork after the other, whichever first, and lays both down."""
    net = Net(1, 2 * n, bag(f"{kind}{i}" for kind in ("think", "fork") for i in range(n)))
    for i in range(n):
        left, right = f"fork{i}", f"fork{(i + 1) % n}"
        net.add([f"think{i}", left], [f"left{i}"])
        net.add([f"think{i}", right], [f"right{i}"])
        net.add([f"left{i}", right], [f"eat{i}"])
        net.add([f"right{i}", left], [f"eat{i}"])
        net.add([f"eat{i}"], [f"think{i}", left, right])
    return net


def shared_memory(n: int) -> Net:
    """Processors with a memory each; the memory of another is reached over one bus."""
    first = bag(["bus", *(f"{kind}{i}" for kind in ("active", "memory") for i in range(n))])
    net = Net(1, 2 * n + 1, first)
    for i in range(n):
        net.add([f"active{i}"], [f"queue{i}"])
        net.add([f"active{i}", f"memory{i}"], [f"own{i}", f"memory{i}"])
        net.add([f"own{i}"], [f"active{i}"])
    for i, j in permutations(range(n), 2):
        net.add([f"queue{i}", "bus", f"memory{j}"], [f"far{i},{j}"])
        net.add([f"far{i},{j}"], [f"active{i}", "bus", f"memory{j}"])
    return net


def token_ring(n: int) -> Net:
    """Dijkstra's ring: the first counts on where the last has its number, the others copy."""
    net = Net(
        1,
        n + 1,
        bag(f"{p}:{p}" for p in range(n + 1)),
        dead="the higher numbers of some processes are gone after their first step",
    )
    for i in range(n + 1):
        net.add([f"0:{i}", f"{n}:{i}"], [f"0:{(i + 1) % (n + 1)}", f"{n}:{i}"])
    for p in range(1, n + 1):
        for i, j in permutations(range(n + 1), 2):
            net.add([f"{p}:{i}", f"{p - 1}:{j}"], [f"{p}:{j}", f"{p - 1}:{j}"])
    return net


def eratosthenes(n: int) -> Net:
    """A number that is there removes its multiples."""
    net = Net(1, n - 1, bag(map(str, range(2, n + 1))))
    for i in range(2, n + 1):
        for j in range(2 * i, n + 1, i):
            net.add([str(i), str(j)], [str(i)])
    return net


def referendum(n: int) -> Net:
    """The vote is opened, and each says yes or no."""
    net = Net(1, n, bag("ready"))
    net.add("ready", [f"voting{i}" for i in range(n)])
    for i in range(n):
        net.add([f"voting{i}"], [f"yes{i}"])
        net.add([f"voting{i}"], [f"no{i}"])
    return net


def rw_mutex(readers: int, writers: int) -> Net:
    """A reader takes its own lock, a writer those of all readers."""
    locks = [f"lock{i}" for i in range(readers)]
    idle = [*(f"reader{i}" for i in range(readers)), *(f"writer{i}" for i in range(writers))]
    net = Net(1, 2 * readers + writers, bag([*locks, *idle]))
    for i, lock in enumerate(locks):
        net.add([f"reader{i}", lock], [f"reading{i}"])
        net.add([f"reading{i}"], [f"reader{i}", lock])
    for i in range(writers):
        net.add([f"writer{i}", *locks], [f"writing{i}"])
        net.add([f"writing{i}"], [f"writer{i}", *locks])
    return net


def dekker(n: int) -> Net:
    """Model a process that raises a flag, goes in where it is the only one, or lowers it."""
    net = Net(1, 2 * n, bag(f"{kind}{i}" for kind in ("out", "low") for i in range(n)))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        low = [f"low{j}" for j in others]
        net.add([f"out{i}", f"low{i}"], [f"try{i}", f"high{i}"])
        net.add([f"try{i}", *low], [f"in{i}", *low])
        net.add([f"in{i}", f"high{i}"], [f"out{i}", f"low{i}"])
        for j in others:
            net.add([f"try{i}", f"high{i}", f"high{j}"], [f"out{i}", f"low{i}", f"high{j}"])
    return net


def erk(n: int) -> Net:
    """The ERK pathway: a reaction that takes place both ways, or one way, for each line."""
    net = Net(n, 5 * n, dict.fromkeys(("Raf", "RKIP", "ERK", "MEKPP", "RP"), n))
    for left, right in (
        ("Raf RKIP", "Raf_RKIP"),
        ("Raf_RKIP ERKPP", "Raf_RKIP_ERKPP"),
        ("ERK MEKPP", "MEKPP_ERK"),
        ("RKIPP RP", "RKIPP_RP"),
    ):
        net.add(left, right)
        net.add(right, left)
    net.add("Raf_RKIP_ERKPP", "Raf ERK RKIPP")
    net.add("MEKPP_ERK", "MEKPP ERKPP")
    net.add("RKIPP_RP", "RKIP RP")
    return net


def circadian_clock(n: int) -> Net:
    """Two genes, their transcripts, two proteins and their complex; `-x` is the room left for x."""
    kinds = ("ma", "mr", "a", "r", "c")
    net = Net(n, 5 * n + 2, {**{f"-{kind}": n for kind in kinds}, "da": 1, "dr": 1})
    for gene in ("a", "r"):
        for form in (f"d{gene}", f"d{gene}_a"):
            net.add([form, f"-m{gene}"], [form, f"m{gene}"])
        net.add([f"m{gene}", f"-{gene}"], [f"m{gene}", gene])
        net.add([f"d{gene}", "a"], [f"d{gene}_a", "-a"])
        net.add([f"d{gene}_a", "-a"], [f"d{gene}", "a"])
        net.add([f"m{gene}"], [f"-m{gene}"])
        net.add([gene], [f"-{gene}"])
    net.add("a r -c", "-a -r c")
    net.add("c -r", "-c r")
    return net


def fms(n: int) -> Net:
    """A flexible manufacturing system: three kinds of parts, three kinds of machines."""
    net = Net(max(n, 3), 3 * n + 6, {"P1": n, "P2": n, "P3": n, "M1": 3, "M2": 1, "M3": 2})
    for part, machine in (("P1", "M1"), ("P2", "M2")):
        net.add(part, f"{part}w")
        net.add([f"{part}w", machine], [f"{part}M"])
        net.add([f"{part}M"], [f"{part}d", machine])
        net.add(f"{part}d", f"{part}s")
        net.add(f"{part}d", f"{part}j")
        net.add(f"{part}s", part)
    for takes, puts in (
        ("P1j P2j", "P12"),
        ("P12", "P12w"),
        ("P12w M3", "P12M"),
        ("P12M", "P12s M3"),
        ("P12s", "P1 P2"),
        ("P3 M2", "P3M M2"),
        ("P3M", "P3s"),
        ("P3s", "P3"),
    ):
        net.add(takes, puts)
    return net


def kanban(n: int) -> Net:
    """Four cells: the first feeds the second and third at once, these the fourth."""
    net = Net(n, 4 * n, {f"kanban{cell}": n for cell in range(4)})
    for cell in range(4):
        net.add([f"work{cell}"], [f"done{cell}"])
        net.add([f"work{cell}"], [f"bad{cell}"])
        net.add([f"bad{cell}"], [f"work{cell}"])
    net.add("kanban0", "work0")
    net.add("done0 kanban1 kanban2", "kanban0 work1 work2")
    net.add("done1 done2 kanban3", "kanban1 kanban2 work3")
    net.add("done3", "kanban3")
    return net


def queens(n: int) -> Net:
    """A queen takes its row, its column and two diagonals; 2 n of these are there each way."""
    lines = [f"{kind}{i}" for kind, size in (("row", n), ("column", n)) for i in range(size)]
    diagonals = [f"{kind}{i}" for kind in ("up", "down") for i in range(2 * n)]
    net = Net(1, 6 * n, bag([*lines, *diagonals]))
    for i, j in product(range(n), repeat=2):
        net.add([f"row{i}", f"column{j}", f"up{i + j}", f"down{i - j + n}"], [f"queen{i},{j}"])
    return net


def sudoku(n: int, *, has_regions: bool = False) -> Net:
    """A number takes its cell, and itself in the row, the column and perhaps the region."""
    kinds = ("cell", "row", "column", "region") if has_regions else ("cell", "row", "column")
    pairs = list(product(range(n * n if has_regions else n), repeat=2))
    net = Net(1, len(kinds) * len(pairs), bag(f"{k}{i},{j}" for k in kinds for i, j in pairs))
    for (i, j), number in product(pairs, range(n * n if has_regions else n)):
        takes = [f"cell{i},{j}", f"row{i},{number}", f"column{j},{number}"]
        if has_regions:
            takes.append(f"region{i // n * n + j // n},{number}")
        net.add(takes, [f"board{i},{j},{number}"])
    return net


def neighbour_grid(n: int, *, is_torus: bool) -> Net:
    """A token in each cell of a grid, which moves to any of the cells around."""
    cells = list(product(range(n), repeat=2))
    net = Net(n * n, n * n, bag(map(str, cells)))
    for one, other in combinations(cells, 2):
        steps = [abs(a - b) for a, b in zip(one, other, strict=True)]
        if all(step <= 1 or (is_torus and step == n - 1) for step in steps):
            net.add([str(one)], [str(other)])
            net.add([str(other)], [str(one)])
    return net


def swimming_pool(n: int) -> Net:
    """A swimmer undresses in a cabin, leaves a bag of clothes, and dresses in a cabin again."""
    net = Net(20 * n, 45 * n, {"out": 20 * n, "cabin": 10 * n, "bag": 15 * n})
    for takes, puts in (
        ("out", "entered"),
        ("entered cabin", "waiting"),
        ("waiting bag", "undressed"),
        ("undressed", "bathing cabin"),
        ("bathing cabin", "dressing"),
        ("dressing", "dressed bag"),
        ("dressed", "out cabin"),
    ):
        net.add(takes, puts)
    return net


def peterson(n: int) -> Net:
    """Peterson's algorithm for n + 1 processes, which pass n rounds; `i.j.k` is a process in round
    j that looks at process k.
    """
    ids, rounds = range(n + 1), range(n)
    first = [f"{kind}{i}" for kind in ("idle", "low") for i in ids]
    net = Net(1, 3 * n + 2, bag([*first, *(f"turn{j}:0" for j in rounds)]))
    for i in ids:
        net.add([f"idle{i}", f"low{i}"], [f"ask{i}.0", f"high{i}"])
        net.add([f"end{i}.{n - 1}"], [f"in{i}"])
        net.add([f"in{i}", f"high{i}"], [f"idle{i}", f"low{i}"])
    for i, j in product(ids, rounds):
        me, mine = f"{i}.{j}", f"turn{j}:{i}"
        if j + 1 < n:
            net.add([f"end{me}"], [f"ask{i}.{j + 1}"])
        net.add([f"test{me}", mine], [f"loop{me}.0", mine])
        net.add([f"is{me}.{i}"], [f"next{me}.{i}"])
        net.add([f"next{me}.{n}"], [f"end{me}"])
        for k in ids:
            net.add([f"ask{me}", f"turn{j}:{k}"], [f"test{me}", mine])
            net.add([f"loop{me}.{k}"], [f"is{me}.{k}"])
            if k < n:
                net.add([f"next{me}.{k}"], [f"loop{me}.{k + 1}"])
            if k != i:
                net.add([f"test{me}", f"turn{j}:{k}"], [f"end{me}", f"turn{j}:{k}"])
                net.add([f"is{me}.{k}"], [f"alone{me}.{k}"])
                net.add([f"alone{me}.{k}", f"low{k}"], [f"next{me}.{k}", f"low{k}"])
                net.add([f"alone{me}.{k}", f"high{k}"], [f"test{me}", f"high{k}"])
    return net


def lamport(n: int) -> Net:
    """Lamport's fast algorithm: x and y, and a flag of each process; a process that has met another
    one waits for all flags at once, `look` and `seen`.
    """
    ids = range(1, n + 1)
    begin = [f"{kind}{i}" for kind in ("start", "low") for i in ids]
    first = bag(["x0", "y0", *begin])
    most = 2 * n + 2 + (n - 1) * n
    net = Net(1, most, first, dead="who has x finds it set by another, or itself in y")
    for i in ids:
        net.add([f"start{i}", f"low{i}"], [f"set_x{i}", f"high{i}"])
        for j in range(n + 1):
            net.add([f"set_x{i}", f"x{j}"], [f"if_y{i}", f"x{i}"])
            net.add([f"set_y{i}", f"y{j}"], [f"if_x{i}", f"y{i}"])
            net.add([f"in{i}", f"y{j}"], [f"leave{i}", "y0"])
            if j != 0:
                net.add([f"if_y{i}", f"y{j}"], [f"back{i}", f"y{j}"])
            if j != i:
                net.add([f"if_x{i}", f"x{j}"], [f"slow{i}", f"x{j}"])
                net.add([f"again{i}", f"y{j}"], [f"wait{i}", f"y{j}"])
        net.add([f"if_y{i}", "y0"], [f"set_y{i}", "y0"])
        net.add([f"back{i}", f"high{i}"], [f"wait{i}", f"low{i}"])
        net.add([f"wait{i}", "y0"], [f"start{i}", "y0"])
        net.add([f"if_x{i}", f"x{i}"], [f"in{i}", f"x{i}"])
        net.add([f"slow{i}", f"high{i}"], [f"all{i}", f"low{i}"])
        net.add([f"all{i}"], [f"loop{i}", *(f"look{i},{j}" for j in ids)])
        for j in ids:
            net.add([f"look{i},{j}", f"low{j}"], [f"seen{i},{j}", f"low{j}"])
        net.add([f"loop{i}", *(f"seen{i},{j}" for j in ids)], [f"again{i}"])
        net.add([f"again{i}", f"y{i}"], [f"in{i}", f"y{i}"])
        for flag in ("low", "high"):
            net.add([f"leave{i}", f"{flag}{i}"], [f"start{i}", f"low{i}"])
    return net
