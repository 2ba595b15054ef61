"""`Trace`, at HTA's import path."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import MissingDataError
from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import Trace as OpenTrace
from hta.common.trace_file import read_trace
from hta.configs.default_values import DEFAULT_TRACE_DIR
from hta.configs.parser_config import ParserConfig
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.frame_columns import add_iteration, transform_correlation_to_index
from hta.facade.trace.sources import source_of
from hta.facade.trace.symbols import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta.facade.trace.trace_view import TraceView

__all__ = [
    "PHASE_COUNTER",
    "PHASE_FLOW_END",
    "PHASE_FLOW_START",
    "Trace",
    "UnknownBaseTimeError",
    "add_iteration",
    "decode_symbol_id_to_symbol_name",
    "get_cpu_gpu_correlation",
    "parse_trace_dict",
    "parse_trace_file",
    "trace_event_timestamp_to_unixtime_ns",
    "transform_correlation_to_index",
]

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

logger = logging.getLogger("holotrace")

PHASE_COUNTER = "C"
PHASE_FLOW_START = "s"
PHASE_FLOW_END = "f"

_NS_OF_A_MICROSECOND = 1_000


class UnknownBaseTimeError(MissingDataError, KeyError):
    """The file does not record when its clock started."""


class Trace(TraceView):
    """The traces of a job, opened without a `TraceAnalysis`.

    Reads files when a frame or an analysis first needs them, so frames are available even before `parse_traces`.
    `load_traces` drops the last step. Times count from the first event of the job. Frames contain the times
    from their files only after `parse_traces` and before `align_and_filter_trace`.

    Args:
        trace_files: `{rank: file}`, or a list of files; by default all traces of the folder. Pass `{}` to open
            no files and assign frames to `traces` yourself.
        trace_dir: the folder.
        parser_config: the args to add to frames as columns; by default the same args as in HTA.

    Raises:
        TraceNotFoundError: these paths contain no trace.
    """

    def __init__(
        self,
        trace_files: Sequence[str] | Mapping[int, str] | None = None,
        trace_dir: str = DEFAULT_TRACE_DIR,
        parser_config: ParserConfig | None = None,
    ) -> None:
        is_empty = isinstance(trace_files, Mapping) and not trace_files
        self._opened = OpenTrace({}) if is_empty else open_trace(source_of(trace_files, trace_dir))
        super().__init__(self._opened, trace_dir, parser_config)
        self.is_parsed = False

    def load_traces(
        self,
        include_last_profiler_step: bool | None = False,  # noqa: FBT001, FBT002 -- HTA's signature
        use_multiprocessing: bool = True,  # noqa: ARG002, FBT001, FBT002 -- no effect
        use_memory_profiling: bool = True,  # noqa: ARG002, FBT001, FBT002 -- no effect
    ) -> None:
        """Load all ranks, and drop the last step unless it is requested; repeated calls do nothing."""
        if self.is_parsed:
            logger.warning("the traces are already loaded; load_traces does nothing")
            return
        self.parse_traces()
        self.align_and_filter_trace(include_last_profiler_step)

    def parse_traces(
        self,
        max_ranks: int = -1,
        use_multiprocessing: bool = True,  # noqa: FBT001, FBT002 -- no effect
        use_memory_profiling: bool = True,  # noqa: FBT001, FBT002 -- no effect
    ) -> None:
        """Load the complete traces of all ranks, or of the first `max_ranks` ranks."""
        ranks = list(self._opened.ranks)
        chosen = ranks if max_ranks < 0 else ranks[:max_ranks]
        self.parse_multiple_ranks(chosen, use_multiprocessing, use_memory_profiling)

    def parse_single_rank(self, rank: int) -> None:
        """Load the complete trace of one rank.

        Raises:
            UnknownRankError: the rank does not exist.
        """
        self.parse_multiple_ranks([rank])

    def parse_multiple_ranks(
        self,
        ranks: Iterable[int],
        use_multiprocessing: bool = True,  # noqa: ARG002, FBT001, FBT002 -- no effect
        use_memory_profiling: bool = True,  # noqa: ARG002, FBT001, FBT002 -- no effect
    ) -> None:
        """Load the complete traces of some ranks; frames contain the times from their files.

        Raises:
            UnknownRankError: the rank does not exist.
        """
        self._show(self._opened.select(ranks) if self._opened.ranks else self._opened)
        self._is_aligned = False
        self.is_parsed = True

    def align_and_filter_trace(
        self,
        include_last_profiler_step: bool | None = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> None:
        """Make times relative to the first event of the job, and drop the last step unless it is requested."""
        trace = self.trace
        self._show(trace if include_last_profiler_step else trace.where(before_last_step))
        self._is_aligned = True


def parse_trace_file(
    trace_file_path: str, cfg: ParserConfig | None = None
) -> tuple[dict[str, Any], pd.DataFrame, TraceSymbolTable]:
    """Return a file's metadata, its events and their symbol table.

    Raises:
        TraceNotFoundError, NotATraceError, UnreadableTraceError: the file does not exist, or is not a readable trace.
    """
    trace = Trace([trace_file_path], parser_config=cfg)
    trace.parse_traces()
    (rank,) = trace.get_ranks()
    return trace.meta_data[rank], trace.get_trace(rank), trace.symbol_table


def parse_trace_dict(trace_file_path: str) -> dict[str, Any]:
    """Return the parsed JSON of a file; see `hta.common.trace_file.read_trace`."""
    return read_trace(trace_file_path)


def get_cpu_gpu_correlation(df: pd.DataFrame) -> pd.DataFrame:
    """Return the indexes of device events (`gpu_index`) and of their launch calls (`cpu_index`), also on stream 0."""
    linked = df[(df["stream"] >= 0) & (df["index_correlation"] >= 0)]
    return pd.DataFrame({"gpu_index": linked["index"].to_numpy(), "cpu_index": linked["index_correlation"].to_numpy()})


def trace_event_timestamp_to_unixtime_ns(trace_event_ts_us: float, trace_metadata: Mapping[str, Any]) -> int:
    """Convert a file's time in µs to nanoseconds since 1970; `trace_metadata` is the file's `meta_data`.

    Raises:
        UnknownBaseTimeError: the file does not record when its clock started; files from before 2024 never do.
    """
    if "baseTimeNanoseconds" not in trace_metadata:
        message = "the trace has no baseTimeNanoseconds, so the start of its clock is unknown"
        raise UnknownBaseTimeError(message)
    return round(trace_event_ts_us * _NS_OF_A_MICROSECOND) + int(trace_metadata["baseTimeNanoseconds"])
