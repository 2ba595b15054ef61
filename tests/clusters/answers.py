"""Run every analysis on one cluster engine, such as Ray, and write the resulting tables as Parquet files.

Equal tables give byte-identical files.

    python -m clusters.answers ENGINE SOURCE FOLDER [MARK]

If the file MARK does not exist, the first worker that opens the highest rank creates MARK and kills itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.catalogue import ANALYSES
from holotrace.execution.executor import IN_PROCESS
from holotrace.execution.processes import processes
from holotrace.execution.ray import RayExecutor
from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import RankTrace


def everything(rank_trace: RankTrace, *, mark: Path, deadly_rank: int) -> npt.NDArray[np.bool_]:
    """Select all events; the first worker that processes the rank `deadly_rank` kills itself instead."""
    if rank_trace.rank == deadly_rank and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return np.ones(rank_trace.table("events", ["event_index"]).height, np.bool_)


@contextmanager
def engine(name: str) -> Iterator[Executor]:
    """Create the executor of an engine as the documentation shows; a tcp:// address means a Dask scheduler."""
    if name == "none":
        yield IN_PROCESS
    elif name == "processes":
        with processes(2) as executor:
            yield executor
    elif name == "ray":
        with RayExecutor("local", num_cpus=2, include_dashboard=False, object_store_memory=80 << 20) as executor:
            yield executor
    elif name == "mpi":
        from mpi4py.futures import MPIPoolExecutor  # noqa: PLC0415 -- importing mpi4py starts MPI

        with MPIPoolExecutor() as executor:
            yield executor
    else:
        from distributed import Client  # noqa: PLC0415 -- distributed may not be installed

        with Client(name) as client:
            yield client.get_executor()


def main(engine_name: str, source: str, folder: str, mark: str = "") -> None:
    """Write the tables and findings of every analysis to a folder."""
    trace = open_trace(source)
    if mark:
        trace = trace.where(partial(everything, mark=Path(mark), deadly_rank=max(trace.ranks)))
    with engine(engine_name) as executor:
        for entry in ANALYSES:
            result = entry.compute(trace, executor=executor)
            Path(folder, f"{entry.name}.findings").write_text("\n".join(result.findings))
            for name, table in vars(result).items():
                if isinstance(table, pl.DataFrame):
                    table.write_parquet(Path(folder, f"{entry.name}.{name}.parquet"))


if __name__ == "__main__":
    main(*sys.argv[1:])
