"""Pages with a checksum each: a flipped bit anywhere in the file is an error, and never a wrong
answer.
"""

from __future__ import annotations

import os
import threading

import apsw

_NAME = "cksmvfs"
RESERVED_BYTES = 8
_loading = threading.Lock()


def checking_vfs() -> str | None:
    """The VFS that writes and verifies a checksum on every page; None where this build of apsw has
    none.
    """
    with _loading:
        if _NAME not in apsw.vfs_names():
            usual = apsw.vfs_names()[0]
            db = apsw.Connection(":memory:")
            try:
                # apsw.sqlite_extra would find it too, but its imports cost more than a search.
                db.enable_load_extension(True)  # noqa: FBT003 - its only argument
                db.load_extension(
                    os.path.join(
                        os.path.dirname(apsw.__file__), "sqlite_extra_binaries", "cksumvfs"
                    )
                )
            except (apsw.Error, AttributeError):
                return None
            finally:
                db.close()
            # it makes itself the default, also for databases of other programs
            apsw.set_default_vfs(usual)
        return _NAME
