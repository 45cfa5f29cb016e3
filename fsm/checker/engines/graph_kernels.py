"""The inner loops that go over the transitions between known states, and of random walks.

They are translated like those of `epochgate.fsm.checker.engines.kernels`.
"""

from __future__ import annotations

from epochgate.fsm.checker.engines.kernels import (
    DEADLOCKED,
    DONE,
    FAULT,
    HEAD,
    MASK,
    RETURNS_MAX,
    SHIFT,
    SKETCH_BITS,
    STUCK,
    TRANSITIONS,
    VIOLATED,
    Bytes,
    Halves,
    Shorts,
    W,
    Words,
    at,
    expand,
    find,
    hash_state,
    inspect,
    is_final,
    unroll,
)


def link(
    pool: Words,
    table: Words,
    status: Words,
    out: Words,
    act: Shorts,
    first: int,
    end: int,
    begins: Words,
    targets: Halves,
    steps: Shorts,
    room: int,
    covered: Bytes,
) -> int:
    """Write the transitions of the states from `first` on; returns the first state left out.

    Those of state i are targets[begins[i]] to targets[begins[i + 1] - 1].
    """
    i = first
    count = begins[first]
    while i < end:
        m = expand(at(pool, i * W), out, act, 0, at(status, FAULT), covered)
        if count + m > room:
            return i
        q = 0
        while q < m:
            h = hash_state(out, q)
            targets[count] = find(pool, table, status[SHIFT], status[MASK], out, q, h)
            steps[count] = act[q]
            count += 1
            q += 1
        i += 1
        begins[i] = count
    return i


def note(sketch: Bytes, h: int) -> int:
    """Keep of a hash what tells how many different ones there were: for each of the groups that
    they are divided into, the longest row of zeros that one of them ends in.
    """
    group = h >> (64 - SKETCH_BITS)
    zeros = 1
    while (h & 1) == 0 and zeros < 50:
        h = h >> 1
        zeros += 1
    if zeros > sketch[group]:
        sketch[group] = zeros
    return 0


def walk(
    state: Words,
    status: Words,
    out: Words,
    act: Shorts,
    taken: Shorts,
    x: int,
    demanded: int,
    found: Words,
    covered: Bytes,
    sketch: Bytes,
    length_max: int,
) -> int:
    """Take random steps from `state`, which is left where the walk ends; `taken` lists them.

    A walk that comes back to the same state again and again only goes round, and ends. A state to
    come back to is chosen after 1, 2, 4 steps and so on.

    status[TRANSITIONS] is the number of steps; status[HEAD] is 1 if properties ended the walk,
    status[STUCK] if no step was possible.
    """
    done = 0
    verdict = DONE
    status[HEAD] = 0
    status[STUCK] = 0
    due = 1
    returns = 0
    chosen = 0
    while True:
        holding = inspect(state, at(status, FAULT), covered)
        h = hash_state(state, 0)
        note(sketch, h)
        found[0] = found[0] | holding
        found[1] = holding
        if (demanded & holding) != demanded or status[FAULT] >= 0:
            status[HEAD] = 1
            verdict = VIOLATED
            break
        returns = returns + (h == chosen)
        if done >= length_max or returns >= RETURNS_MAX:
            break
        if done == due:
            due = due * 2
            returns = 0
            chosen = h
        m = expand(state, out, act, 0, at(status, FAULT), covered)
        if status[FAULT] >= 0:
            verdict = VIOLATED
            break
        if m == 0:
            if is_final(state, at(status, FAULT), covered) == 0:
                verdict = DEADLOCKED
            status[STUCK] = 1
            break
        x = x ^ (x << 13)
        x = x ^ (x >> 7)
        x = x ^ (x << 17)
        q = (x >> 11) % m
        for k in unroll(W):
            state[k] = out[q * W + k]
        taken[done] = act[q]
        done += 1
    status[TRANSITIONS] = done
    return verdict


def walks(
    initial: Words,
    starts: int,
    base: int,
    first: int,
    end: int,
    state: Words,
    status: Words,
    out: Words,
    act: Shorts,
    taken: Shorts,
    demanded: int,
    found: Words,
    covered: Bytes,
    sketch: Bytes,
    length_max: int,
    steps_max: int,
    sums: Words,
) -> int:
    """Take the walks from `first` on up to `end`, each from one of the `starts` initial states, up
    to a violation or `steps_max` steps in all.

    sums: steps, walks, walks that have ended where no step was possible, the longest, the initial
    state of the last one, and walks that only went round at last.
    """
    verdict = DONE
    i = first
    while i < end and sums[0] < steps_max and verdict == DONE:
        x = base + i + 0x9E3779B97F4A7C15
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB
        x = x ^ (x >> 31)
        if x == 0:
            x = 0x9E3779B97F4A7C15
        start = 0
        if starts > 1:
            x = x ^ (x << 13)
            x = x ^ (x >> 7)
            x = x ^ (x << 17)
            start = (x >> 11) % starts
        for k in unroll(W):
            state[k] = initial[start * W + k]
        length = length_max
        if steps_max - sums[0] < length:
            length = steps_max - sums[0]
        verdict = walk(state, status, out, act, taken, x, demanded, found, covered, sketch, length)
        done = status[TRANSITIONS]
        sums[0] = sums[0] + done
        sums[1] = sums[1] + 1
        if verdict == DONE and status[STUCK] == 1:
            sums[2] = sums[2] + 1
        if verdict == DONE and status[STUCK] == 0 and done < length:
            sums[5] = sums[5] + 1
        if done > sums[3]:
            sums[3] = done
        sums[4] = start
        i += 1
    return verdict


def mark(pool: Words, first: int, end: int, marks: Words, fault: Words, covered: Bytes) -> int:
    """Write for each state a bit for each property that holds in it."""
    i = first
    while i < end:
        marks[i] = inspect(at(pool, i * W), fault, covered)
        i += 1
    return 0


def components(
    count: int,
    begins: Words,
    targets: Halves,
    inside: Bytes,
    low: Halves,
    order: Halves,
    stack: Halves,
    frames: Halves,
    edges: Words,
    component: Halves,
) -> int:
    """Number the strongly connected components, from 1, of the states that are inside (Tarjan).

    All arrays but the first three hold zeros. This one runs as Python, too.
    """
    clock = 1
    height = 0
    found = 0
    root = 0
    while root < count:
        depth = 0
        if inside[root] != 0 and order[root] == 0:
            frames[0] = root
            depth = 1
        while depth > 0:
            v = frames[depth - 1]
            if order[v] == 0:
                order[v] = clock
                low[v] = clock
                clock += 1
                edges[v] = begins[v]
                stack[height] = v
                height += 1
            if edges[v] < begins[v + 1]:
                w = targets[edges[v]]
                edges[v] = edges[v] + 1
                if inside[w] != 0:
                    if order[w] == 0:
                        frames[depth] = w
                        depth += 1
                    else:
                        if component[w] == 0 and order[w] < low[v]:
                            low[v] = order[w]
            else:
                depth = depth - 1
                if depth > 0:
                    u = frames[depth - 1]
                    if low[v] < low[u]:
                        low[u] = low[v]
                if low[v] == order[v]:
                    found += 1
                    w = v + 1
                    while w != v:
                        height = height - 1
                        w = stack[height]
                        component[w] = found
        root += 1
    return found


GRAPHS = (link, note, walk, walks, mark, components)
