"""What a sync would do, without doing it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from notewell.index.documents import digest_of
from notewell.index.plan import plan
from notewell.index.walk import Walk
from notewell.sources.source import Conversations
from notewell.store.values import Stored
from notewell.text.private import unclosed
from notewell.text.words import clean
from notewell.types import Document, Skipped


class Outlook(NamedTuple):
    """Disk against index: what a sync would find to do."""

    on_disk: int
    to_add: int
    to_change: int
    to_drop: int
    skipped: tuple[Skipped, ...]


def outlook_of(walk: Walk) -> Outlook:
    """What a sync would do; reads the files that a sync would read, so that the counts are true."""
    documents, skipped, complete, _ = walk.scan()
    remarks = walk.remarks()
    readers = {d.path: s for s, d in documents}
    stored = walk.store.documents.stored()
    work = plan({d.path: d for _, d in documents}.values(), stored, complete=complete)
    outcomes: Counter[str] = Counter()
    forgotten = walk.tombstones.known()
    for document in (*work.add, *work.change):
        known = stored.get(document.path)
        source = readers[document.path]
        if remarks.refused(document):
            outcomes["unreadable"] += 1
            continue  # as is remarked
        try:
            if isinstance(source, Conversations):
                outcomes[_growth(source, document, known)] += 1
                continue
            text = walk.safe(clean(source.read(document)))
            remarks.note(document, unclosed(text), partly=True)
            digest = digest_of(forgotten.without(text, document.path)[0])
        except (OSError, ValueError) as error:
            outcomes["drop"] += known is not None and isinstance(
                error, FileNotFoundError | ValueError
            )
            outcomes["unreadable"] += 1
            remarks.note(document, str(error), partly=False)
            continue
        outcomes["add" if known is None else "same" if known.digest == digest else "change"] += 1
    on_disk, to_drop = len(readers) - outcomes["unreadable"], len(work.drop) + outcomes["drop"]
    remarks.drop([path for path in remarks.paths if path not in readers or path in work.drop])
    return Outlook(
        on_disk, outcomes["add"], outcomes["change"], to_drop, (*skipped, *remarks.all())
    )


def _growth(source: Conversations, document: Document, stored: Stored | None) -> str:
    """What a sync would do with a conversation: add, change, or find it the same."""
    if stored is None:
        return "add"
    from notewell.index.conversations import Tail  # noqa: PLC0415

    part = source.read_from(document, Tail.load(stored.tail).place)
    return "same" if part.unread or not (part.turns or part.again) else "change"
