"""Read a table of operations from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO

import polars as pl

from holotrace.enrich.job_operations.table import operations_table
from holotrace.errors import InvalidOperationsError, TraceNotFoundError
from holotrace.locations.location import Address, address_text, located

_READERS: Mapping[str, Callable[[BytesIO], pl.DataFrame]] = {
    ".parquet": pl.read_parquet,
    ".csv": pl.read_csv,
    ".arrow": pl.read_ipc,
    ".feather": pl.read_ipc,
    ".ndjson": pl.read_ndjson,
    ".jsonl": pl.read_ndjson,
}


def is_operations_file(path: str) -> bool:
    """Whether a file, judging by its name, is a table of operations and not a trace."""
    return path.lower().endswith(tuple(_READERS))


def read_operations(path: Address) -> pl.DataFrame:
    """Read a table of operations that can be passed to `holotrace.straggler_cost`.

    Args:
        path: a Parquet, CSV, Arrow or line-delimited JSON file, local or remote. The file has the columns listed below,
            or the columns of the files published with "Understanding Stragglers in Large Model Training Using What-if
            Analysis" (OSDI'25); docs/reference/operations_table.md describes both.

    Returns:
        The table, sorted by step, rank and start_ns, with missing columns filled in:

        rank, dp_rank, stage, step, microbatch, kind, start_ns, duration_ns, chunk, global_chunk, sequence, instance,
        message_bytes

    Raises:
        TraceNotFoundError: there is no such file.
        InvalidOperationsError: the file is not a table of operations; the message names the column or the first wrong
            row.

    >>> import holotrace, polars, tempfile
    >>> rows = {"rank": [0, 1], "kind": ["forward-compute"] * 2, "start_ns": [0, 0], "duration_ns": [100, 120]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     polars.DataFrame(rows).write_parquet(f"{folder}/job.parquet")
    ...     table = holotrace.read_operations(f"{folder}/job.parquet")
    >>> table.select("rank", "dp_rank", "stage", "duration_ns").rows()
    [(0, 0, 0, 100), (1, 1, 0, 120)]
    """
    source, location = address_text(path), located(path)
    reader = next((read for ending, read in _READERS.items() if source.lower().endswith(ending)), None)
    if reader is None:
        message = (
            f"{source} is not a table of operations: its name does not end in {', '.join(_READERS)}; save the table in "
            "one of these formats, or open traces with holotrace.open_trace"
        )
        raise InvalidOperationsError(message)
    if not location.is_file():
        message = f"there is no table of operations at {source}; check the path"
        raise TraceNotFoundError(message)
    try:
        frame = reader(BytesIO(location.read_bytes()))
    except (pl.exceptions.PolarsError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        message = f"{source} cannot be read as {source.rpartition('.')[2]}: {reason}; write the table again"
        raise InvalidOperationsError(message) from None
    return operations_table(frame, source)
