"""The inner loops that go over the transitions between known states, and of random walks.

They are translated like those of `epochgate.fsm.checker.engines.kernels`.
"""

from __future__ import annotations

from epochgate.fsm.checker.engines.kernels import (
    DEADLOCKED,
    DONE,
    FAULT,
    HEAD,
    RETURNS_MAX,
    SKETCH_BITS,
    STUCK,
    TRANSITIONS,
    VIOLATED,
    at,
    expand,
    inspect,
    is_final,
)
from epochgate.fsm.checker.engines.store_kernels import (
    Bytes,
    Halves,
    Shorts,
    W,
    Words,
    find,
    fold,
    kept_at,
    scrambled,
    unfold,
    unroll,
    unscrambled,
)


def link(
    main: Halves,
    extras: Bytes,
    shape: Words,
    numbers: Halves,
    queue: Halves,
    initial: int,
    values: Words,
    plan: Words,
    slots: Words,
    status: Words,
    scratch: Words,
    out: Words,
    act: Shorts,
    begins: Words,
    targets: Halves,
    steps: Shorts,
    marks: Words,
    covered: Bytes,
) -> int:
    """Write the transitions of all states, and a bit for each property that holds in a state;
    returns how many states there are.

    States are numbered in the order in which a breadth-first search finds them: queue[i] is the
    slot of state i, and numbers[its slot] is i + 1. The initial ones are there to begin with. The
    transitions of state i are targets[begins[i]] to targets[begins[i + 1] - 1].
    """
    i = 0
    count = 0
    height = initial
    while i < height:
        key = unscrambled(kept_at(main, extras, shape, queue[i]), shape)
        unfold(key, values, plan, at(scratch, W), scratch)
        marks[i] = inspect(scratch, at(status, FAULT), covered)
        m = expand(scratch, out, act, 0, at(status, FAULT), covered)
        q = 0
        while q < m:
            key = fold(
                out, q, scratch, at(scratch, W), at(scratch, 3 * W), values, plan, slots, status
            )
            j = find(main, extras, shape, scrambled(key, shape))
            if numbers[j] == 0:
                queue[height] = j
                height += 1
                numbers[j] = height
            targets[count] = numbers[j] - 1
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


def hash_words(state: Words) -> int:
    """Mix all words of a state into 64 bits."""
    h = 0x9E3779B97F4A7C15
    for k in unroll(W):
        h = (h ^ state[k]) * 0xFF51AFD7ED558CCD
        h = h ^ (h >> 32)
    h = h * 0xC4CEB9FE1A85EC53
    return h ^ (h >> 29)


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
        h = hash_words(state)
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


GRAPHS = (link, note, hash_words, walk, walks, components)
