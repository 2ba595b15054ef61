"""Tests of finding slow hosts, links and groups by comparing equal collectives."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

from holotrace.analyses.collectives.compute import collectives
from holotrace.analyses.collectives.slow_parts import slow_parts
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder


def _instances(transfers: dict[tuple[str, ...], float], *, size: int = 1_000, count: int = 5) -> pl.DataFrame:
    """Return `count` all-reduces of two ranks per group; `transfers` maps the group's hosts to the transfer time."""
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
    """If collectives take equally long on all ten links between five hosts, no link is slow."""
    assert _parts(_instances(_PAIRS)) == []


def test_one_slow_link_is_named():
    """Collectives on link b-d take three times as long as those on other links, so link b-d is reported as slow."""
    assert _parts(_instances(_PAIRS | {("b", "d"): 3_000.0})) == [("link", "b and d", 3.0)]


def test_a_host_whose_links_are_all_slow_is_named_instead_of_its_links():
    """All four links of host c are slow, so the result lists host c and none of its links."""
    of_c = {pair: 3_000.0 for pair in _PAIRS if "c" in pair}

    assert _parts(_instances(_PAIRS | of_c)) == [("host", "c", 3.0)]


def test_a_slow_group_within_a_host_is_named_by_its_ranks():
    """Each of six groups has two ranks on one host; the slow group is listed as a group, not as a host or link."""
    groups = {(f"{host}{n}",) * 2: 1_000.0 for host in "xyz" for n in range(2)}

    assert _parts(_instances(groups | {("y0", "y0"): 2_000.0})) == [("group", "y0-y0", 2.0)]


def test_two_instances_are_too_few_to_call_a_link_slow():
    """With two collectives per link, no link is reported as slow; three are needed."""
    assert _parts(_instances(_PAIRS | {("b", "d"): 3_000.0}, count=2)) == []


def test_messages_of_different_sizes_are_not_compared():
    """Larger messages take longer on all links, so no link is slow."""
    large = _instances(dict.fromkeys(_PAIRS, 9_000.0), size=9_000)

    assert _parts(pl.concat([_instances(_PAIRS), large])) == []


@pytest.mark.parametrize("column", ["dtype", "message_bytes", "group_size"])
def test_collectives_of_unknown_size_are_not_compared(column: str):
    """No link is reported if the size, element type or group size is unknown: it may be slower due to more data."""
    slow = _instances(_PAIRS | {("b", "d"): 3_000.0})

    assert _parts(slow.with_columns(pl.lit(None, slow.schema[column]).alias(column))) == []


def test_barriers_are_compared():
    """A barrier moves no data, so a slow link is found even without a size or an element type."""
    unsized = {"collective": "barrier", "dtype": None, "message_bytes": None}
    barriers = _instances(_PAIRS | {("b", "d"): 3_000.0}).with_columns(
        **{name: pl.lit(value) for name, value in unsized.items()}
    )

    assert _parts(barriers) == [("link", "b and d", 3.0)]


@pytest.mark.parametrize(
    ("called", "text"),
    [
        ({}, "is slow: all_reduce of 4 KiB takes 300 µs, but only 100 µs elsewhere"),
        ({"collective": "barrier"}, "is slow: barrier takes 300 µs, but only 100 µs elsewhere"),
    ],
)
def test_the_finding_names_collective_and_size(called: dict[str, str], text: str):
    """The finding gives the slow and the usual time, and the size unless the collective is a barrier."""
    assert text in collectives(_job_with_a_slow_group(**called)).findings[0]


def test_a_slow_group_of_unknown_size_is_not_named():
    """Without an element type, the size is unknown; the slow group may just move more data, so it is not reported."""
    assert collectives(_job_with_a_slow_group(dtype="Unknown")).slow.is_empty()


def _job_with_a_slow_group(**called: str) -> Trace:
    """Return a job of six groups of two ranks; the collectives of ranks 6 and 7 take 300 instead of 100 µs."""
    trace = TraceBuilder()
    for rank, number in product(range(12), range(5)):
        group = rank // 2
        trace.rank(rank).collective(
            group=str(group),
            group_ranks=(2 * group, 2 * group + 1),
            start_us=1_000 * number,
            duration_us=300 if group == 3 else 100,
            **called,
        )
    return trace.build()


def _random_job(seed: int, planted: str) -> tuple[pl.DataFrame, set[tuple[str, str]]]:
    """Return the sends of a job with 4 to 64 hosts, and the slow link or host if there is one.

    The standard deviation of the send times is 1 to 15 %, and 3 % of the sends take 2 to 10 times as long. On a slow
    link or host, sends take 1.5 to 4 times as long.
    """
    generator = np.random.default_rng(seed)
    host_count = int(generator.integers(4, 65))
    links = _random_links(host_count, generator)
    slow_host = int(generator.integers(host_count)) if planted == "host" else None
    slow_link = links[generator.integers(len(links))] if planted == "link" else None
    factor, noise = generator.uniform(1.5, 4), generator.uniform(0.01, 0.15)
    sends = int(generator.integers(3, 40))
    times = generator.lognormal(np.log(1e6), noise, (len(links), sends))
    times *= np.array([factor if link == slow_link or slow_host in link else 1 for link in links])[:, None]
    times *= np.where(generator.random(times.shape) < 0.03, generator.uniform(2, 10, times.shape), 1)
    names = [[f"host-{end:02}" for end in link] for link in links]
    table = pl.DataFrame({"hosts": names, "transfer_ns": times.astype(np.int64).tolist()}).explode("transfer_ns")
    same = {"collective": "send", "dtype": "float32", "message_bytes": 1_000, "group_size": 2}
    instances = table.with_columns(
        pl.col("hosts").list.join("-").alias("process_group"), *(pl.lit(v).alias(k) for k, v in same.items())
    )
    link = {("link", " and ".join(f"host-{end:02}" for end in slow_link))} if slow_link else set()
    return instances, {("host", f"host-{slow_host:02}")} if slow_host is not None else link


def _random_links(host_count: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """Return the links of a ring of hosts, and up to two random links per host."""
    ring = {tuple(sorted((host, (host + 1) % host_count))) for host in range(host_count)}
    others = list(combinations(range(host_count), 2))
    chosen = generator.permutation(len(others))[: 2 * host_count]
    return sorted(ring | {others[number] for number in chosen})


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 334), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_planted_slowness_is_found_and_nothing_else(seeds: range) -> None:
    """In jobs with a slow link, a slow host or neither, precision and recall are at least 99 %."""
    named, planted, right = 0, 0, 0
    for seed, kind in product(seeds, ("nothing", "link", "host")):
        instances, truth = _random_job(seed, kind)
        parts = set(slow_parts(instances).select("kind", "part").rows())
        named, planted, right = named + len(parts), planted + len(truth), right + len(parts & truth)

    assert right >= 0.99 * named
    assert right >= 0.99 * planted
