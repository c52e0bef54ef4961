"""Finding where terms are in chunks whose terms are spelled out, for stores that keep them as
text.
"""

from __future__ import annotations

from collections.abc import Mapping

from notewell.store.values import FieldTerms, Placed, Sought


def places_in(fields: Mapping[int, FieldTerms], sought: Sought) -> Placed:
    """Where the words, prefixes and exact forms that are sought are in these chunks, given by
    row.
    """
    import numpy as np  # noqa: PLC0415

    numbers: dict[str, list[int]] = {}
    for number, word in enumerate(sought.words):
        numbers.setdefault(word, []).append(number)
    prefixes = list(enumerate(sought.prefixes, start=len(sought.words)))

    def terms(word: str) -> list[int]:
        return numbers.get(word, []) + [
            number for number, prefix in prefixes if word.startswith(prefix)
        ]

    body: list[tuple[int, int, int]] = []
    head: list[tuple[int, int]] = []
    lengths, exact = [], []
    for chunk, field in enumerate(fields.values()):
        words = field.body
        lengths.append(len(words))
        # Most words of a chunk are not in the question, and this runs for every candidate.
        matches = [
            (position, word) for position, word in enumerate(words) if prefixes or word in numbers
        ]
        body += [(chunk, term, position) for position, word in matches for term in terms(word)]
        head += [
            (chunk, term) for term in sorted({term for word in field.head for term in terms(word)})
        ]
        exact.append(len({*field.exact} & {*sought.exact}))
    return Placed(
        list(fields),
        np.asarray(lengths, dtype=np.int64),
        np.reshape(np.asarray(body, dtype=np.int64), (-1, 3)).T,
        np.reshape(np.asarray(head, dtype=np.int64), (-1, 2)).T,
        np.asarray(exact, dtype=np.int64),
    )
