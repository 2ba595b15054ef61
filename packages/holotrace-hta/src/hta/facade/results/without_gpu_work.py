"""Empty frames that HTA's methods return for a job without GPU work; `attrs["reason"]` says why they are empty."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hta.facade.imports.modules_later import pd
from hta.facade.results.reasons import explained

_KERNEL_TYPES = {"kernel_type": "str", "sum": "int64", "percentage": "float64"}
_KERNELS = {
    "name": "str",
    **{f"{statistic} (us)": "int64" for statistic in ("sum", "max", "min")},
    "stddev": "float64",
    "mean (us)": "float64",
    "kernel_type": "str",
    "rank": "int64",
    "count": "int64",
}

_TIMES = {
    "rank": "int64",
    **{f"{part}_time(us)": "int64" for part in ("idle", "compute", "non_compute", "kernel")},
    **{f"{part}_time_pctg": "float64" for part in ("idle", "compute", "non_compute")},
}
_IDLE_TIMES = {
    "rank": "int64",
    "stream": "int64",
    "idle_category": "str",
    "idle_time": "int64",
    "idle_time_ratio": "float64",
    "device": "int64",
}
_IDLE_STATISTICS = {
    **dict.fromkeys(("rank", "stream", "count"), "int64"),
    **dict.fromkeys(("mean", "std", "min", "25%", "50%", "75%", "max"), "float64"),
    "device": "int64",
}


def no_times(reason: str) -> pd.DataFrame:
    """Return an empty temporal breakdown."""
    return _empty(_TIMES, reason)


def no_idle_times(reason: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return empty idle times and empty statistics of idle intervals."""
    return _empty(_IDLE_TIMES, reason), _empty(_IDLE_STATISTICS, reason).rename_axis(index="idle_category")


def no_overlap(ranks: Iterable[int], reason: str) -> pd.DataFrame:
    """Return NaN as the overlap of each rank, as for ranks without communication."""
    listed = np.array(list(ranks), dtype=np.int64)
    frame = pd.DataFrame({"rank": listed, "comp_comm_overlap_pctg": np.full(len(listed), np.nan)})
    frame.attrs["reason"] = reason
    return frame


def no_kernels(reason: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the two empty frames of a kernel breakdown."""
    return _empty(_KERNEL_TYPES, reason), _empty(_KERNELS, reason)


def _empty(columns: dict[str, str], reason: str) -> pd.DataFrame:
    return explained(pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in columns.items()}), reason)
