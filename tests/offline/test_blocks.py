"""The compiled reader of the Relevance Prediction format says what the reader line by line says, of any file."""

import gzip

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickgym.offline import read_yandex_personalized, read_yandex_relevance, readers
from clickgym.offline.blocks import Numbers
from clickgym.offline.readers import _parse_relevance, _YandexSessions
from clickgym.offline.tables import check_size, read_lines


def line_by_line(path, bad_rows="strict"):
    sessions = _YandexSessions(path, bad_rows, _parse_relevance, begun=False, max_memory=10**9)
    sessions.read(read_lines(path))
    return sessions.log()


def outcome(read, path, bad_rows):
    """All that a reader says: the log, or its message."""
    try:
        log = read(path, bad_rows=bad_rows)
    except ValueError as error:
        return str(error)
    arrays = [log.items.tolist(), log.clicks.tolist(), log.queries.tolist()]
    return [*arrays, log.item_labels, log.query_labels, log.off_list_clicks, dict(log.skipped)]


@pytest.fixture
def small_blocks(set_blocks):
    set_blocks(60, 25)


URLS = st.lists(st.sampled_from(["1", "2", "3", "40", "567", "1234567890123456"]), min_size=3, max_size=3, unique=True)
BIG = "12345678901234567890123"
ODD = st.sampled_from([
    "", "x", "0\t0\tC", "1\t0\tC\t5\t5", "1\t0\tQ\t7\t1", "2\t0\tQ\t7\t1\t1\t2", "2\t0\tQ\t7\t1\t1\t2\t2", "1\t\tC\t1",
    "1\t0\tX\t1", "01\t0\tQ\t7\t1\t1\t2\t3", "2\t0\tQ\t07\t1\t1\t2\t03", "2\t0\tQ\t99999999999\t1\t1\t2\t3", "1\t0\tC\t01",
    "2\t0\tQ\t7\t1\t0\t2\t3\r", f"1\t0\tC\t{BIG}", f"2\t0\tQ\t7\t1\t1\t2\t{BIG}", "3\t0\tC\t2", "1\t0\tC\t2\r\r",
    "é", "-1\t0\tC\t1",
])  # fmt: skip


@st.composite
def logs(draw):
    lines = []
    for session in draw(st.lists(st.integers(0, 4), max_size=12)):
        for _ in range(draw(st.integers(1, 2))):
            query, urls = draw(st.sampled_from(["7\t1", "7\t2", "8\t0"])), draw(URLS)
            lines.append(f"{session}\t{draw(st.integers(0, 99))}\tQ\t{query}\t" + "\t".join(urls))
            lines += [f"{session}\t1\tC\t{url}" for url in draw(st.lists(st.sampled_from([*urls, "999"]), max_size=3))]
    for _ in range(draw(st.integers(0, 2))):
        lines.insert(draw(st.integers(0, len(lines))), draw(ODD))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"]))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("bad_rows", ["strict", "skip:100%"])
@settings(max_examples=40)
@given(text=logs())
@example(text="1\t0\tQ\t7\t1\t1\t2\t3\nx\n1\t0\tQ\t7\t1\t1\t2\t3\n1\t0\tC\t3\n" * 4)
@example(text="5\t0\tQ\t7\t1\t1\t2\t3\n7\t0\tC\n7\t0\tQ\t7\t1\t1\t2\t3\n" * 3)
def test_both_readers_say_the_same(tmp_path_factory, text, bad_rows):
    path = tmp_path_factory.getbasetemp() / "both.tsv"
    path.write_bytes(text.encode())
    assert outcome(read_yandex_relevance, path, bad_rows) == outcome(line_by_line, path, bad_rows)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("bad_rows", ["strict", "skip:100%"])
@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_of_a_file_that_breaks_off_what_comes_first_is_named(tmp_path, bad_rows, cut):
    rng = np.random.default_rng(0)
    lines = [f"{session}\t0\tQ\t1\t1\t" + "\t".join(map(str, rng.choice(10**6, 3, replace=False))) for session in range(2000)]
    for fault in (None, 3, 1990):
        faulty = list(lines)
        if fault is not None:
            faulty[fault] = "x"
        path = tmp_path / "log.gz"
        whole = gzip.compress("\n".join(faulty).encode())
        path.write_bytes(whole[: int(cut * len(whole))])
        said = outcome(read_yandex_relevance, path, bad_rows)
        assert said == outcome(line_by_line, path, bad_rows)
        assert ("line 4: expected" if fault == 3 and bad_rows == "strict" else "the compressed file is damaged") in said


def test_both_readers_read_the_same_real_log(data_folder):
    path = data_folder / "yandex_sample" / "yandex_sample_relpred_format.tsv.gz"
    one, other = read_yandex_relevance(path), line_by_line(path)
    for name in ("items", "clicks", "queries"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("item_labels", "query_labels", "off_list_clicks"):
        assert getattr(one, name) == getattr(other, name)


def test_numbers_of_labels_grow_with_the_dictionary():
    index = {b"odd": 0, b"5": 1}
    numbers = Numbers(index, pair=False)
    keys = np.random.default_rng(0).integers(0, 10**12, 200_000)
    found = numbers.of(np.append(keys, 5))
    assert found[-1] == 1
    labels = list(index)
    assert [labels[number] for number in found[:50]] == [b"%d" % key for key in keys[:50]]
    assert len(index) == 2 + len(np.unique(keys))
    index[b"007"] = len(index)
    index[b"7"] = len(index)
    assert numbers.of(np.array([7, 5])).tolist() == [len(index) - 1, 1]


def test_the_table_of_numbers_is_never_more_than_half_full():
    """A full one would be searched for ever."""
    numbers, keys = Numbers({}, pair=False), np.arange(60_000)
    for part in np.split(keys, 3):
        assert numbers.of(part).tolist() == part.tolist()
        assert 2 * (numbers.keys.slots >= 0).sum() <= len(numbers.keys.slots)


@pytest.mark.parametrize(
    ("label", "pair", "key"),
    [(b"0", False, 0), (b"00", False, None), (b"9" * 18, False, 10**18 - 1), (b"9" * 19, False, None), (b"3-2", False, None),
     (b"3-2", True, 3 * 2**31 + 2), (b"3", True, None), (b"3-02", True, None), (b"2147483648-0", True, None)],
)  # fmt: skip
def test_which_labels_are_keys(label, pair, key):
    keys = np.array([0, 3, 3 * 2**31, 3 * 2**31 + 2, 10**18 - 1])
    assert keys[Numbers({label: 0}, pair).of(keys) == 0].tolist() == ([] if key is None else [key])


# ----------------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("read", [read_yandex_relevance, read_yandex_personalized])
def test_no_more_is_kept_than_allowed(log_file, set_blocks, read):
    set_blocks(1000, 500)
    begin = (
        "{0}\tM\t0\t0\n{0}\t0\tQ\t0\t1\t1\t{1},1\t2,1\n" if read is read_yandex_personalized else "{0}\t0\tQ\t1\t1\t{1}\t2\n"
    )
    path = log_file("log", "".join(begin.format(session, 10 + session) for session in range(2000)))
    assert len(read(path, max_memory="1MB")) == 2000
    with pytest.raises(
        ValueError, match=r"log: the first [\d,]+ queries take 1\d\.\d kB of memory, more than max_memory = 10\.0 kB"
    ):
        read(path, max_memory=10_000)


@pytest.mark.parametrize("log_format", readers.LOG_FORMATS)
def test_a_file_that_unpacks_to_nothing_but_one_line_is_refused_at_once(tmp_path, log_format):
    path = tmp_path / "log.gz"
    with gzip.open(path, "wb", 1) as file:
        for _ in range(40):
            file.write(bytes(1 << 20))
    with pytest.raises(ValueError, match=r"log\.gz, line 1 is longer than 16 MiB; expected a text file"):
        readers.LOG_FORMATS[log_format](path)


@pytest.mark.parametrize(("size", "number"), [(5, 5), ("5", 5), ("1.5kB", 1500), ("2 MB", 2e6), ("4GB", 4e9), ("1T", 1e12)])
def test_sizes_in_words(size, number):
    assert check_size("max_memory", size) == number


@pytest.mark.parametrize("size", ["", "x", "4 XB", "0", "-1GB", 0, 1.5, "0.5"])
def test_wrong_sizes(size):
    with pytest.raises((ValueError, TypeError), match="max_memory is"):
        check_size("max_memory", size)
