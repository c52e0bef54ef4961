"""Network file systems, on which SQLite's WAL and change notifications cannot be trusted."""

from __future__ import annotations

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
_NETWORK_FILE_SYSTEMS = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "fuse.sshfs",
    "fuse.rclone",
    "ceph",
    "glusterfs",
)


def on_network(path: Path) -> bool:
    """Whether a path is on a network file system, where SQLite's WAL is unsafe."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    best, kind = "", ""
    where = str(path.resolve())
    for line in mounts:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), parts[1])
        if (where + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best):
            best, kind = mount, parts[2]
    return kind.startswith(_NETWORK_FILE_SYSTEMS)
