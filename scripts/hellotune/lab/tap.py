# SPDX-License-Identifier: MIT
"""Segments on the wire: heard at the client's end of the pair, and written by hand.

Tap hears what either side sends, also what the client's kernel would drop because it's for a
stranger: an address of the pair's network that belongs to nobody, so that nobody answers.
"""

import dataclasses
import socket
import struct
import time

from hellotune.lab.namespaces import Skip

FIN, SYN, RST, ACK = 1, 2, 4, 16
STRANGER = "10.77.0.100"
EVERY_PROTOCOL = 3  # ETH_P_ALL of linux/if_ether.h
ETHERNET_HEADER_BYTES = 14


@dataclasses.dataclass(frozen=True)
class Segment:
    source: tuple
    target: tuple
    sequence: int
    flags: int
    header_bytes: int
    data_bytes: int


class Tap:
    def __init__(self, client):
        with client.inside():
            try:
                self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                            socket.htons(EVERY_PROTOCOL))
            except OSError as error:
                raise Skip(f"no packet sockets here ({error.strerror})") from error
            self.socket.bind(("v1", 0))
            self.socket.setblocking(False)

    def hear(self, wanted, count, seconds=1.0):
        """Up to count segments for which wanted(segment), in the time given."""
        found, deadline = [], time.monotonic() + seconds
        while len(found) < count:
            try:
                heard = parse(self.socket.recv(2048))
            except BlockingIOError:
                # Only now: whoever got no CPU until the deadline finds all of it in the queue.
                if time.monotonic() > deadline:
                    break
                time.sleep(0.005)
                continue
            if heard and wanted(heard):
                found.append(heard)
        return found


def parse(frame):
    packet = frame[ETHERNET_HEADER_BYTES:]
    if frame[12:14] != b"\x08\x00" or packet[9] != socket.IPPROTO_TCP:
        return None
    ip_bytes = (packet[0] & 15) * 4
    length, = struct.unpack_from("!H", packet, 2)
    source_port, target_port, sequence, _, offset, flags = struct.unpack_from("!HHIIBB", packet,
                                                                              ip_bytes)
    header_bytes = (offset >> 4) * 4
    return Segment((socket.inet_ntoa(packet[12:16]), source_port),
                   (socket.inet_ntoa(packet[16:20]), target_port),
                   sequence, flags, header_bytes, length - ip_bytes - header_bytes)


class Writer:
    """Sends bare segments from the client's end, whatever source address they name."""

    def __init__(self, lab):
        # A neighbour that is known, so that the server's answers leave at once, and is nobody.
        lab.server.run("ip", "neigh", "replace", STRANGER, "lladdr", "02:00:00:00:00:64",
                       "dev", "v0", "nud", "permanent")
        with lab.client.inside():
            try:
                self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            except OSError as error:
                raise Skip(f"no raw sockets here ({error.strerror})") from error

    def send(self, source, target, flags, sequence=0, acknowledged=0):
        data = segment(source, target, flags, sequence, acknowledged)
        self.socket.sendto(data, (target[0], 0))


def segment(source, target, flags, sequence, acknowledged):
    """An IPv4 packet with a TCP header and nothing else; source and target are (address, port)."""
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    tcp = struct.pack("!HHIIBBHHH", source[1], target[1], sequence, acknowledged, 5 << 4, flags,
                      64240, 0, 0)
    pseudo = addresses + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    # The kernel fills in the length, the id and the checksum of the IP header (raw(7)).
    return struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_TCP, 0) + addresses + tcp


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
