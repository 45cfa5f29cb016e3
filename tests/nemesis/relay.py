"""A slow and lossy link: a program that carries frames between two interfaces, late or never.

    python -m tests.nemesis.relay LEFT RIGHT DELAY_MS LOSS_PERCENT SEED

Runs beside the lab's bridge, for kernels without netem. A frame comes with its virtio header, in
which the kernel keeps what it has left to the hardware: checksums, and segments to be cut.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_VNET_HDR = 15
PACKET_IGNORE_OUTGOING = 23
FRAME_BYTES_MAX = 1 << 17
WAIT_S_MAX = 0.5


def opened(interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.bind((interface, ETH_P_ALL))
    sock.setblocking(False)
    return sock


def carry(
    left: socket.socket, right: socket.socket, delay_s: float, loss: float, seed: int
) -> None:
    chance, number = random.Random(seed), 0
    other = {left: right, right: left}
    due: list[tuple[float, int, socket.socket, bytes]] = []
    while True:
        now_s = time.monotonic()
        while due and due[0][0] <= now_s:
            _, _, to, frame = heapq.heappop(due)
            try:
                to.send(frame)
            except OSError:
                continue  # the interface is down, or full: the frame is lost, as on a real link
        wait_s = min(WAIT_S_MAX, due[0][0] - now_s) if due else WAIT_S_MAX
        for sock in select.select([left, right], [], [], max(0.0, wait_s))[0]:
            try:
                frame = sock.recv(FRAME_BYTES_MAX)
            except OSError:
                continue
            if chance.random() >= loss:
                number += 1
                heapq.heappush(due, (time.monotonic() + delay_s, number, other[sock], frame))


if __name__ == "__main__":
    _, first, second, delay_ms, loss_percent, seed_text = sys.argv
    carry(
        opened(first),
        opened(second),
        float(delay_ms) / 1000,
        float(loss_percent) / 100,
        int(seed_text),
    )
