"""Frames of all sorts: what planes say to each other, what clients say, and what is none of theirs or broken on the way."""
import ctypes
import struct

from in_c import Endpoint, Place
from layouts import FLAG, HEADER, HEADER_BYTES, KIND, LIMIT
from test_crc32c import crc32c

GROUPS = 8
CLIENTS = ("request", "answer", "submit")
BRINGS_COMMAND = ("request", "forward", "submit")
WITHOUT_PAYLOAD = ("append_ok", "retransmit", "heartbeat", "heartbeat_ok", "checkpoint")
CONFIGURATIONS = ("p1a", "admit")
IPV4_MAPPED = bytes(10) + b"\xff\xff"
ETHERNET_BYTES, UDP_BYTES = 14, 8


def place_of(dice, vlan, has_multicast):
    """Planes of both families at different ports; one of the groups has none."""
    place = Place(vlan=vlan)
    if has_multicast:
        place.multicast[:] = bytes([239, *dice.bytes(3)])
    ports = dice.random.sample(range(1, 65536), GROUPS)
    for group in range(GROUPS):
        address = dice.bytes(16) if group % 2 else IPV4_MAPPED + dice.bytes(4)
        port = 0 if group == GROUPS - 1 else ports[group]
        place.at[group] = endpoint_of(address, port, dice.bytes(6))
    return place


def endpoint_of(address, port, mac):
    """Where somebody is."""
    return Endpoint((ctypes.c_uint8 * 16)(*address), (ctypes.c_uint8 * 2)(*port.to_bytes(2, "big")), (ctypes.c_uint8 * 6)(*mac))


def packet_of(dice, c, keys):
    """A packet of sound form, with a right tag under one of the four keys, and its kind."""
    name = dice.one_of(list(KIND))
    bytes_max = LIMIT["payload_bytes_max"]
    size = dice.one_of([0, 0, 1, 18, 18 + dice.below(60), 60, 120, dice.below(bytes_max + 1), bytes_max])
    if name in WITHOUT_PAYLOAD:
        size = 0
    elif name in CONFIGURATIONS:
        size = dice.below(LIMIT["acceptors_max"] * LIMIT["life_bytes"] + 1)
    elif name == "forward":
        size = max(size, LIMIT["origin_bytes"])
    payload = dice.bytes(size)
    header = {field: dice.number(bits) for field, bits, _ in HEADER.fields}
    header.update(magic=0x5157, version=1, kind=KIND[name], payload_bytes=size, tag=0)
    header["flags"] = dice.number(7) & ~FLAG["epoch"] | dice.below(2)
    if name in BRINGS_COMMAND:
        header["payload_crc32c"] = crc32c(payload[LIMIT["origin_bytes"] if name == "forward" else 0:])
    return signed(c, keys, header, payload), name


def signed(c, keys, header, payload):
    """A packet with its tag under the key that its kind and epoch name."""
    names = {value: name for name, value in KIND.items()}
    pair = keys.pairs[names.get(header["kind"]) in CLIENTS]
    header = {**header, "tag": 0}
    encoded = HEADER.vector(header).to_bytes(HEADER_BYTES, "big")
    header["tag"] = c.tag(pair.key[header["flags"] & 1], encoded, payload)
    return HEADER.vector(header).to_bytes(HEADER_BYTES, "big") + payload


def frame_of(dice, place, group, packet, to_group=False):
    """Around a packet: Ethernet, IP and UDP, from somewhere, to the plane of a group."""
    at = place.at[group]
    to, sender = bytes(at.address), dice.bytes(16)
    udp = dice.bytes(2) + bytes(at.port) + struct.pack(">H", UDP_BYTES + len(packet)) + dice.bytes(2) + packet
    if to[:12] == IPV4_MAPPED:
        proto = b"\x08\x00"
        ip = struct.pack(">BBHHHBBH", 0x45, dice.number(8), 20 + len(udp), dice.number(16), dice.one_of([0, 0x4000]), dice.number(8),
                         17, dice.number(16)) + sender[:4] + (bytes(place.multicast) if to_group else to[12:])
    else:
        proto = b"\x86\xdd"
        ip = struct.pack(">IHBB", 6 << 28 | dice.number(28), len(udp), 17, dice.number(8)) + sender + to
    tag = b"\x81\x00" + struct.pack(">H", dice.number(4) << 12 | place.vlan) if place.vlan else b""
    return dice.bytes(12) + tag + proto + ip + udp


def any_frame(dice, c, place, keys, group=None):
    """A frame, to a group or to any, and what was done to it."""
    group = dice.below(GROUPS) if group is None else group
    packet, name = packet_of(dice, c, keys[group])
    change = dice.one_of(["none"] * 12 + CHANGES)
    to_group = place.multicast[0] and dice.seldom(4)
    if change == "form":
        header = HEADER.of_vector(int.from_bytes(packet[:HEADER_BYTES], "big"))
        field = dice.one_of(["magic", "version", "kind", "payload_bytes", "flags"])
        header[field] = dice.near(header[field], dict((name, bits) for name, bits, _ in HEADER.fields)[field])
        packet = signed(c, keys[group], header, packet[HEADER_BYTES:])
    elif change == "checksum" and name in BRINGS_COMMAND:
        header = HEADER.of_vector(int.from_bytes(packet[:HEADER_BYTES], "big"))
        header["payload_crc32c"] ^= 1 << dice.below(32)
        packet = signed(c, keys[group], header, packet[HEADER_BYTES:])
    elif change == "length":
        packet = packet[:dice.below(len(packet))] if dice.below(2) else packet + dice.bytes(1 + dice.below(70))
    frame = frame_of(dice, place, group, packet, to_group)
    if change == "cut":
        frame = frame[:1 + dice.below(len(frame) - 1)]
    elif change == "padded":
        frame += dice.bytes(1 + dice.below(200))
    elif change in ("bit", "bit before"):
        at = dice.below(len(frame) if change == "bit" else min(len(frame), 66))
        frame = frame[:at] + bytes([frame[at] ^ 1 << dice.below(8)]) + frame[at + 1:]
    elif change == "vlan":
        tag = b"\x81\x00" + struct.pack(">H", dice.near(place.vlan, 12))
        frame = frame[:12] + tag + frame[16 if place.vlan else 12:]
    elif change == "foreign":
        frame = dice.bytes(1 + dice.one_of([dice.below(66), dice.below(1600), dice.below(9000)]))
    return frame, change


def smallest_frame(dice, c, place, keys):
    """A packet without payload to a plane at an IPv4 address."""
    header = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "kind": KIND["heartbeat"], "term": dice.number(64)}
    return frame_of(dice, place, 0, signed(c, keys[0], header, b""))


CHANGES = ["form", "checksum", "length", "cut", "padded", "bit", "bit before", "vlan", "foreign"]
