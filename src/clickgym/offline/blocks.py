"""Compiled parsing of the lines of Yandex's Relevance Prediction format, a block of whole sessions at a time.

Only regular lines are understood here: of any other the block is left to the reader that goes line by line, which knows what is
wrong. Blocks are parsed in any order and by several threads; labels are numbered afterwards, in the order of the file.
"""

from __future__ import annotations

import numpy as np

from ..core.kernels import inner, kernel
from .keys import Ints, Keys, Long

MOST_POSITIONS = 200
"""URLs of a list, beyond which lines are not regular: each is compared with each."""
HALF = 1 << 31  # a query and its region, each below this, make one key
DIGITS = 18  # of a number that fits into a key

TAB, LINE_FEED, RETURN, ZERO, NINE, CLICK, QUERY = b"\t\n\r09CQ"


@inner
def number_at(data, at):  # type: ignore[no-untyped-def]
    """The number that begins here, and where it ends; -1 if there is none, or another number has the same value."""
    value, start = np.int64(0), at
    while ZERO <= data[at] <= NINE:  # a block ends with a line feed
        value = value * 10 + (data[at] - ZERO)
        at += 1
    if at == start or at - start > DIGITS or (data[start] == ZERO and at - start > 1):
        return np.int64(-1), at
    return value, at


@inner
def head_at(data, at):  # type: ignore[no-untyped-def]
    """The session of the line that begins here, whether it is a click, its URL or query, and where that ends; -1 at first if
    the line is not regular."""
    irregular = np.int64(-1), False, np.int64(-1), at
    session, at = number_at(data, at)
    if session < 0 or data[at] != TAB:
        return irregular
    at += 1
    begin = at
    while ZERO <= data[at] <= NINE:  # of the time the value means nothing
        at += 1
    if at == begin or data[at] != TAB or data[at + 1] not in (CLICK, QUERY) or data[at + 2] != TAB:
        return irregular
    clicked = data[at + 1] == CLICK
    value, at = number_at(data, at + 3)
    return (session, clicked, value, at) if value >= 0 else irregular


@inner
def mark_click(url, first_page, n_pages, urls, clicks):  # type: ignore[no-untyped-def]
    """Mark a click on the last list of a session that holds the URL; whether there is one."""
    for page in range(n_pages - 1, first_page - 1, -1):
        for k in range(urls.shape[1]):
            if urls[page, k] == url:
                clicks[page, k] = 1
                return True
    return False


@inner
def read_list(data, at, query, page, urls, queries, clicks):  # type: ignore[no-untyped-def]
    """Read a query's region and URLs, from here on; where they end, or -1 if they are not regular."""
    if data[at] != TAB:
        return -1
    region, at = number_at(data, at + 1)
    if region < 0 or region >= HALF or query >= HALF:
        return -1
    for k in range(urls.shape[1]):
        if data[at] != TAB:
            return -1
        url, at = number_at(data, at + 1)
        if url < 0:
            return -1
        for above in range(k):
            if urls[page, above] == url:
                return -1
        urls[page, k] = url
        clicks[page, k] = 0
    queries[page] = query * HALF + region
    return at


@kernel
def parse_relevance(data, longest, urls, queries, clicks):  # type: ignore[no-untyped-def]
    """Parse whole sessions.

    Args:
        data: bytes of whole lines, each with its line feed.
        longest: bytes of a line that is not regular.
        urls: ``(M, K)`` int64, set to the URLs of each query; M is at least the number of lines.
        queries: ``(M,)`` int64, set to ``query * HALF + region``.
        clicks: ``(M, K)`` int8, set.

    Returns:
        The queries, or -1 if a line is not regular; and the clicks on URLs that no list of their session holds.
    """
    n_pages, first_page, off_list, at, session = 0, 0, 0, 0, np.int64(-1)
    while at < len(data):
        start = at
        this, clicked, value, at = head_at(data, at)
        if this < 0:
            return -1, 0
        if clicked:
            if this != session or n_pages == first_page:
                return -1, 0
            off_list += not mark_click(value, first_page, n_pages, urls, clicks)
        else:
            at = read_list(data, at, value, n_pages, urls, queries, clicks)
            if at < 0:
                return -1, 0
            if this != session:
                session, first_page = this, n_pages
            n_pages += 1
        at += data[at] == RETURN
        if data[at] != LINE_FEED or at + 1 - start >= longest:
            return -1, 0
        at += 1
    return n_pages, off_list


class Numbers:
    """The numbers of labels that are made of numbers, by a hash table beside the dictionary of all labels.

    Args:
        index: the labels and their numbers, in order; others may add to it.
        pair: whether a label is two numbers with a hyphen, instead of one.
    """

    def __init__(self, index: dict[bytes, int], pair: bool) -> None:
        self.index, self.pair, self.keys, self._numbers = index, pair, Keys(), np.empty(0, np.int32)

    def of(self, keys: Long) -> Ints:
        """The number of each key; what is new is added to the dictionary."""
        numbers, new = self.keys.numbers(keys, keys)
        labels = (b"%d-%d" % divmod(key, HALF) if self.pair else b"%d" % key for key in keys[new].tolist())
        added = [self.index.setdefault(label, len(self.index)) for label in labels]
        self._numbers = np.append(self._numbers, np.array(added, np.int32))
        return self._numbers[numbers]
