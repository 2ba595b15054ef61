"""Reading single files, at HTA's import path; there is one parser."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import IO, TYPE_CHECKING, Any

from hta.common.trace import parse_trace_dict, parse_trace_file
from hta.configs.parser_config import DEFAULT_PARSE_VERSION, ParserBackend, ParserConfig
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.device_type import UNKNOWN, is_mtia, vendor_of

if TYPE_CHECKING:
    import pandas as pd

    from hta.facade.trace.symbols import TraceSymbolTable

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

__all__ = [
    "DEFAULT_PARSE_VERSION",
    "MetaDataKey",
    "get_default_trace_parsing_backend",
    "infer_gpu_type",
    "parse_metadata_ijson",
    "parse_trace_dataframe",
    "parse_trace_dict",
    "set_default_trace_parsing_backend",
]

_chosen = [ParserBackend.JSON]


class MetaDataKey(Enum):
    """Keys that `meta_data` has besides those of the file."""

    DEVICE_TYPE = "device_type"

    def __str__(self) -> str:
        """Return the key."""
        return self.value


def parse_trace_dataframe(
    trace_file_path: str, cfg: ParserConfig
) -> tuple[dict[str, Any], pd.DataFrame, TraceSymbolTable]:
    """Return what `hta.common.trace.parse_trace_file` returns."""
    return parse_trace_file(trace_file_path, cfg)


def parse_metadata_ijson(fh: IO[bytes]) -> dict[str, Any]:
    """Return what an open trace says about itself outside its events."""
    content: dict[str, Any] = json.load(fh)
    return {key: value for key, value in content.items() if key != "traceEvents"}


def infer_gpu_type(metadata: Mapping[str, Any] | None = None, name_set: Iterable[str] | None = None) -> str:
    """Return whose devices a trace is from: `NVIDIA GPU`, `AMD GPU`, `MTIA` or `UNKNOWN GPU`.

    Args:
        metadata: what the file says about itself.
        name_set: names of events.
    """
    if is_mtia(metadata or {}):
        return "MTIA"
    return UNKNOWN if name_set is None else vendor_of(list(name_set))


def set_default_trace_parsing_backend(parser_backend: ParserBackend) -> None:
    """Keep the name of a parser; there is one."""
    _chosen[:] = [parser_backend]


def get_default_trace_parsing_backend() -> ParserBackend:
    """Return what `set_default_trace_parsing_backend` was given."""
    return _chosen[0]
