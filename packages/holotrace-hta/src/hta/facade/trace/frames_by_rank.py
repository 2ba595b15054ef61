"""`analyzer.t.traces`: creates the frame of each rank on first access, and detects changes to frames."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace.errors import UnknownRankError
from hta.facade.imports.modules_later import pd

READ_COLUMNS = (
    "index", "cat", "name", "pid", "tid", "ts", "dur", "end", "stream", "correlation", "external_id", "iteration",
    "index_correlation", "bytes", "memory_bw_gbps",
)  # fmt: skip
"""The columns that HTA's or holotrace's analyses read."""

Fingerprint: TypeAlias = tuple[Any, ...]


class FramesByRank(MutableMapping[int, "pd.DataFrame"]):
    """{rank: frame}.

    Creates each frame on first access, then returns the same object each time; scripts may assign other frames.
    """

    def __init__(self, ranks: Iterable[int], make: Callable[[int], pd.DataFrame]) -> None:
        """Prepare the frames of these ranks; `make(rank)` creates a frame when it is first accessed."""
        self._make = make
        self._frames: dict[int, pd.DataFrame | None] = dict.fromkeys(ranks)
        self._as_made: dict[int, Fingerprint] = {}

    def __getitem__(self, rank: int) -> pd.DataFrame:
        """Return the frame of a rank."""
        if rank not in self._frames:
            raise UnknownRankError.from_available(rank, self._frames)
        frame = self._frames[rank]
        if frame is None:
            frame = self._frames[rank] = self._make(rank)
            self._as_made[rank] = fingerprint(frame)
        return frame

    def __setitem__(self, rank: int, frame: pd.DataFrame) -> None:
        """Replace the frame of a rank."""
        self._frames[rank] = frame
        self._as_made.pop(rank, None)

    def __delitem__(self, rank: int) -> None:
        """Remove a rank."""
        if rank not in self._frames:
            raise UnknownRankError.from_available(rank, self._frames)
        del self._frames[rank]
        self._as_made.pop(rank, None)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ranks."""
        return iter(self._frames)

    def __len__(self) -> int:
        """Return the number of ranks."""
        return len(self._frames)

    def __contains__(self, rank: object) -> bool:
        """Return whether the rank exists, without creating its frame."""
        return rank in self._frames

    def __repr__(self) -> str:
        """Show the ranks."""
        return f"FramesByRank(ranks={list(self)})"

    def changed(self, *, all_of_them: bool = False) -> dict[int, tuple[pd.DataFrame, Fingerprint]]:
        """Return the frames that scripts assigned or changed, each with its fingerprint.

        Args:
            all_of_them: treat every frame as changed.
        """
        handed_out = (
            dict(self) if all_of_them else {rank: frame for rank, frame in self._frames.items() if frame is not None}
        )
        prints = {rank: fingerprint(frame) for rank, frame in handed_out.items()}
        return {
            rank: (frame, prints[rank])
            for rank, frame in handed_out.items()
            if all_of_them or prints[rank] != self._as_made.get(rank)
        }


def fingerprint(frame: pd.DataFrame) -> Fingerprint:
    """Return a fingerprint of the columns in `READ_COLUMNS` and of the order of rows."""
    columns = [name for name in READ_COLUMNS if name in frame.columns]
    return (len(frame), *((name, str(frame[name].dtype), _checksum(frame[name].to_numpy())) for name in columns))


def _checksum(values: npt.NDArray[Any]) -> int:
    if values.dtype == object:
        return hash(tuple(map(str, values.tolist())))
    return zlib.crc32(np.ascontiguousarray(values).data.cast("B")) if len(values) else 0
