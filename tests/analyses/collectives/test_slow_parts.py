"""Slow hosts and links among equal collectives."""

from __future__ import annotations

from itertools import combinations

import polars as pl

from holotrace.analyses.collectives.slow_parts import slow_parts


def _instances(transfers: dict[tuple[str, ...], float], *, size: int = 1_000, count: int = 5) -> pl.DataFrame:
    """Return `count` all-reduces of two ranks for each group of hosts, with its transfer time."""
    return pl.DataFrame(
        [
            {
                "collective": "all_reduce",
                "dtype": "float32",
                "message_bytes": size,
                "group_size": 2,
                "process_group": "-".join(hosts),
                "hosts": sorted(set(hosts)),
                "transfer_ns": transfer + n,
            }
            for hosts, transfer in transfers.items()
            for n in range(count)
        ]
    )


def _parts(instances: pl.DataFrame) -> list[tuple[str, str, float]]:
    return slow_parts(instances).select("kind", "part", pl.col("slowdown").round(1)).rows()


_PAIRS = dict.fromkeys(combinations("abcde", 2), 1_000.0)


def test_equal_links_are_not_slow():
    """Ten links between five hosts with equal times give no row."""
    assert _parts(_instances(_PAIRS)) == []


def test_one_slow_link_is_named():
    """The link between b and d takes three times as long as the others."""
    assert _parts(_instances(_PAIRS | {("b", "d"): 3_000.0})) == [("link", "b and d", 3.0)]


def test_a_host_whose_links_are_all_slow_is_named_instead_of_its_links():
    """All four links of host c are slow, so c is; the links are not listed again."""
    of_c = {pair: 3_000.0 for pair in _PAIRS if "c" in pair}

    assert _parts(_instances(_PAIRS | of_c)) == [("host", "c", 3.0)]


def test_a_slow_group_within_a_host_is_named_by_its_ranks():
    """Among six groups that each live on one host, the slow one is named as a group."""
    groups = {(f"{host}{n}",) * 2: 1_000.0 for host in "xyz" for n in range(2)}

    assert _parts(_instances(groups | {("y0", "y0"): 2_000.0})) == [("group", "y0-y0", 2.0)]


def test_two_instances_are_too_few_to_call_a_link_slow():
    """A link is judged by at least three collectives."""
    assert _parts(_instances(_PAIRS | {("b", "d"): 3_000.0}, count=2)) == []


def test_messages_of_different_sizes_are_not_compared():
    """Larger messages take longer everywhere; no link is slow."""
    large = _instances(dict.fromkeys(_PAIRS, 9_000.0), size=9_000)

    assert _parts(pl.concat([_instances(_PAIRS), large])) == []
