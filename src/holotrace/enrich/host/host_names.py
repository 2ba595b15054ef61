"""Finds the class of a host range (step, data loader, optimizer, module) by its name from PyTorch or Lightning."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import polars as pl


class NodeClass(IntEnum):
    """The class of a node in the trees of host events."""

    ROOT = 0
    OPERATOR = 1
    ANNOTATION = 2
    PYTHON = 3
    MODULE = 4
    STEP = 5
    DATALOADER = 6
    OPTIMIZER = 7
    BACKWARD = 8
    LIGHTNING_MODULE = 9
    LIGHTNING_PROFILE = 10


HOST_NODE_COLUMNS = {
    "node": pl.UInt32,
    "event_index": pl.UInt32,
    "tree": pl.Int32,
    "parent": pl.Int64,
    "depth": pl.Int32,
    "node_class": pl.UInt8,
    "name": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "of_parent_ns": pl.Int64,
    "is_counted": pl.Boolean,
}
"""Columns of the host trees; see `holotrace.enrich.host.host_nodes.host_nodes`."""

MODULE_PREFIX = "nn.Module: "
_OBJECT = r"( of .*)?( object)? at 0x[0-9a-fA-F]+(>?)$"
LIGHTNING_MODULE_PREFIX = "[pl][module]"
LIGHTNING_PROFILE_PREFIX = "[pl][profile]"

_NO_CLASS = 255
_NAME = pl.col("text")
_CLASS_OF_NAME = (
    (_NAME.str.starts_with("ProfilerStep"), NodeClass.STEP),
    (
        (_NAME.str.starts_with("enumerate(DataLoader)#") & _NAME.str.ends_with(".__next__"))
        | _NAME.str.starts_with("enumerate(DataPipe)#"),
        NodeClass.DATALOADER,
    ),
    (_NAME.str.starts_with("Optimizer.step"), NodeClass.OPTIMIZER),
    (_NAME.str.starts_with(LIGHTNING_MODULE_PREFIX), NodeClass.LIGHTNING_MODULE),
    (_NAME.str.starts_with(LIGHTNING_PROFILE_PREFIX), NodeClass.LIGHTNING_PROFILE),
)
_NOT_COUNTED = _NAME.str.starts_with("Optimizer.") | _NAME.is_in(
    ["DataParallel.forward", "DistributedDataParallel.forward"]
)


def without_addresses(names: pl.Series) -> pl.Series:
    """Remove the object and its address from the names of bound functions; the address differs between processes.

    >>> without_addresses(pl.Series(["<built-in method run_backward of torch._C._EngineBase object at 0x7f3a>"])).item()
    '<built-in method run_backward>'
    """
    return names.str.replace(_OBJECT, "$3")


def classes_by_name(names: pl.Series, otherwise: npt.NDArray[np.uint8], strings: pl.Series) -> npt.NDArray[np.uint8]:
    """Return the NodeClass of each range: the class that its name shows, else its class in `otherwise`.

    Args:
        names: string ids.
        otherwise: the class to use for each range if its name shows no class.
        strings: the text of every string id.
    """
    by_id = strings.to_frame("text").select(_first_match().alias("class"))["class"].to_numpy()
    said = by_id[names.to_numpy()]
    answers: npt.NDArray[np.uint8] = np.where(said == _NO_CLASS, otherwise, said).astype(np.uint8)
    return answers


def is_counted_name(names: pl.Series, strings: pl.Series) -> npt.NDArray[np.bool_]:
    """Return whether the analyses count events with these names (string ids) as operators.

    Wrappers such as `DistributedDataParallel.forward` and `Optimizer.…` are not counted, although files from before
    2022 record them as operators.
    """
    by_id = strings.to_frame("text").select((~_NOT_COUNTED).alias("counted"))["counted"].to_numpy()
    counted: npt.NDArray[np.bool_] = by_id[names.to_numpy()]
    return counted


def _first_match() -> pl.Expr:
    chain = pl.lit(_NO_CLASS, pl.UInt8)
    for condition, node_class in reversed(_CLASS_OF_NAME):
        chain = pl.when(condition).then(pl.lit(int(node_class), pl.UInt8)).otherwise(chain)
    return chain
