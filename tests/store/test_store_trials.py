"""Many writers, kills and failing disks: every answer is the undisturbed one, or one clear error.

`scripts/store_trials.py` does the same for longer.
"""

from __future__ import annotations

import logging

import pytest
from scripts.store_trials import damage, failed, kills, race


@pytest.fixture(autouse=True)
def _quiet(caplog) -> None:
    """Silence the log: hundreds of entries are rebuilt."""
    caplog.set_level(logging.ERROR, "holotrace")


@pytest.mark.parametrize(
    ("trials", "processes", "address"), [(3, 4, "{folder}/job.store"), (2, 2, "local://{folder}/job.store")]
)
def test_processes_write_disjoint_ranks_at_once(trials, processes, address) -> None:
    """On disk and on object stores, every rank of every process is there, and no reader sees a partial one."""
    seen = race(trials, processes, address=address)
    assert (seen["written: True"], seen["store: whole"], failed(seen)) == (trials * processes, trials, False), seen


def test_processes_write_the_same_ranks_at_once() -> None:
    """The last one wins, and none of them fails."""
    seen = race(2, 2, same=True)
    assert (seen["written: True"], seen["store: whole"], failed(seen)) == (4, 2, False), seen


def test_processes_that_send_the_same_ranks_at_once() -> None:
    """On object stores they are refused, or one of them wins; a mix of two never counts as a rank."""
    seen = race(2, 2, same=True, address="local://{folder}/job.store")
    assert seen["written: True"] + seen["written: refused"] == 4, seen
    assert not failed(seen), seen


@pytest.mark.slow
def test_killed_processes_leave_nothing_wrong_behind() -> None:
    """Whenever SIGKILL hits them; the next process removes what they left."""
    seen = kills(2, events=300)
    assert (seen["opened: whole"], seen["store then: whole"], failed(seen)) == (1, 1, False), seen


@pytest.mark.slow
def test_changed_bytes_are_noticed() -> None:
    """A cache is rebuilt, and a store reports which file is damaged."""
    seen = damage(16)
    assert (seen["cache: whole"], failed(seen)) == (8, False), seen
    told = seen["job.store: an error that names the file and the way out"]
    assert told + seen["job.store: whole"] == 8, seen
