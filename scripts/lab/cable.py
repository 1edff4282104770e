#!/usr/bin/env python3
"""A cable in user space: cable.py INTERFACE_A INTERFACE_B SETTINGS

Forwards frames between two interfaces, late, lossy or not at all. SETTINGS is JSON, a list of rules; the
first rule that matches a frame decides: {"from": "a"|"b"|null, "mac": MAC|null, "delay_ms": 5,
"jitter_ms": 0, "loss": 0.01, "reorder": 0.0}. "from" is the interface that the frame came in by, "mac"
the address at its other end. A frame that no rule matches is forwarded at once.

The kernel's netem does the same, and many kernels of virtual machines are built without it.
"""
import heapq
import json
import random
import select
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_VNET_HDR = 15
SO_RCVBUFFORCE = 33
PACKET_OUTGOING = 4
# struct virtio_net_hdr: with it, segments that the sender left whole and checksums that it left open stay so.
HEADER = 10
LARGEST = 70000
BUFFER = 64 << 20


def attach(name):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    link.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    link.bind((name, 0))
    link.setblocking(False)
    return link


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", "")) if text else None


class Rule:
    def __init__(self, values):
        self.side = values.get("from")
        self.mac = mac_bytes(values.get("mac"))
        self.delay_s = values.get("delay_ms", 0) / 1e3
        self.jitter_s = values.get("jitter_ms", 0) / 1e3
        self.loss = values.get("loss", 0)
        self.reorder = values.get("reorder", 0)

    def matches(self, side, frame):
        if self.side not in (None, side):
            return False
        if self.mac is None:
            return True
        # From a, the host's side, the other end is the destination; from b the source.
        address = frame[HEADER:HEADER + 6] if side == "a" else frame[HEADER + 6:HEADER + 12]
        return address == self.mac


class Cable:
    def __init__(self, names, rules):
        self.links = {side: attach(name) for side, name in zip("ab", names)}
        self.rules = rules
        self.waiting = []
        self.count = 0
        self.last = {"a": 0.0, "b": 0.0}

    def due(self, side, frame, now):
        """When the frame is to go out; None: never."""
        rule = next((rule for rule in self.rules if rule.matches(side, frame)), None)
        if rule is None:
            return now
        if rule.loss and random.random() < rule.loss:
            return None
        if rule.reorder and random.random() < rule.reorder:
            return now  # overtakes those that wait
        # As on a wire, frames stay in order but for those that `reorder` picks.
        self.last[side] = max(self.last[side], now + rule.delay_s + random.random() * rule.jitter_s)
        return self.last[side]

    def take(self, side):
        for _ in range(256):
            try:
                frame, address = self.links[side].recvfrom(LARGEST)
            except (BlockingIOError, OSError):
                return
            if address[2] == PACKET_OUTGOING:
                continue
            now = time.monotonic()
            when = self.due(side, frame, now)
            if when is not None:
                self.count += 1
                heapq.heappush(self.waiting, (when, self.count, "b" if side == "a" else "a", frame))

    def send(self):
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            _, _, side, frame = heapq.heappop(self.waiting)
            try:
                self.links[side].send(frame)
            except OSError:
                pass  # full, or down: a frame is lost, as it would be on a wire

    def run(self):
        poller = select.epoll()
        sides = {}
        for side, link in self.links.items():
            poller.register(link, select.EPOLLIN)
            sides[link.fileno()] = side
        print("ready", flush=True)
        while True:
            wait = -1 if not self.waiting else max(0, self.waiting[0][0] - time.monotonic())
            for number, _ in poller.poll(wait):
                self.take(sides[number])
            self.send()


if __name__ == "__main__":
    Cable(sys.argv[1:3], [Rule(values) for values in json.loads(sys.argv[3])]).run()
