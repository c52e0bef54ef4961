"""Pages that carry a checksum of their own: a flipped bit anywhere in the file is damage, and never an answer."""

from __future__ import annotations

import os
import threading

import apsw

_NAME = "cksmvfs"
RESERVED_BYTES = 8
_loading = threading.Lock()


def checking_vfs() -> str | None:
    """The VFS that writes a checksum on every page and verifies it; None where this build of apsw brings none."""
    with _loading:
        if _NAME not in apsw.vfs_names():
            usual = apsw.vfs_names()[0]
            db = apsw.Connection(":memory:")
            try:
                # apsw.sqlite_extra would find it too, but its imports cost more than a whole search.
                db.enable_load_extension(True)  # noqa: FBT003 - its only argument
                db.load_extension(os.path.join(os.path.dirname(apsw.__file__), "sqlite_extra_binaries", "cksumvfs"))
            except (apsw.Error, AttributeError):
                return None
            finally:
                db.close()
            apsw.set_default_vfs(usual)  # it makes itself the default; databases of others are none of its business
        return _NAME
