"""Whose program is at the other end of a connection on loopback, as the kernel of Linux knows
it.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

# From linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ESTABLISHED = 1
_HEAD = struct.Struct("=IHHII")  # length, kind, flags, number, sender
_ASKED = struct.Struct("=BBBxI")  # family, protocol, extensions, states
_REST = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # any interface, no cookie
_ANSWER = struct.Struct("=BBBB48sIIIII")  # family, state, …, the two ends, …, user, inode
_ENDS_BYTES = 36
_MAPPED = bytes(10) + b"\xff\xff"
_NOBODY = 65534  # stands for every user that a user namespace has no number for


def own_user() -> int | None:
    """The user whose programs can be told from those of others here; None where no kernel tells."""
    if sys.platform != "linux" or os.geteuid() == _NOBODY:
        return None
    return os.geteuid()


_End = tuple[str, int | None] | None


def user_of(client: _End, server: _End) -> int | None:
    """The user who holds the client's end of an established connection; None if that cannot be
    known.

    The kernel is asked about this one socket, which takes some 20 µs however many there are. Who
    has closed their end is unknown: what is left of a connection then belongs to nobody.
    """
    if sys.platform != "linux" or client is None or server is None:
        return None
    try:
        family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
        ends = [socket.inet_pton(family, address) for address, _ in (client, server)]
        ports = struct.pack("!HH", client[1], server[1])
        asked = ports + b"".join(end.ljust(16, b"\0") for end in ends)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.settimeout(0)  # it has answered by the time it has taken the question
            body = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED) + asked + _REST
            kernel.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body)
            answer, (sender, _) = kernel.recvfrom(4096)
        _, kind, *_ = _HEAD.unpack_from(answer)
        _, state, _, _, there, _, _, _, user, inode = _ANSWER.unpack_from(answer, _HEAD.size)
    except (OSError, struct.error):
        return None
    # A socket of IPv6 may have connected to an address of IPv4.
    same = (asked, ports + b"".join(_MAPPED + end for end in ends))
    known = (sender, kind, state) == (0, _BY_FAMILY, _ESTABLISHED) and inode
    return int(user) if known and there[:_ENDS_BYTES] in same else None
