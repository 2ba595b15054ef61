"""Which host call stands around which, and which of them caused each piece of device work.

The analyses that the TensorBoard plugin had read these tables alone. By default they hold our own attribution; with
`compat="torch_tb_profiler"` that of the plugin's last source, quirks included, so that the same sums give its numbers.
"""

from __future__ import annotations

import polars as pl

from holotrace.enrich.host.host_names import Compat, NodeClass
from holotrace.enrich.host.host_nodes import own_device_owner, own_host_nodes, own_runtime_owner
from holotrace.enrich.tensorboard_plugin.trees import plugin_device_owner, plugin_host_nodes, plugin_runtime_owner
from holotrace.store.trace import RankTrace

__all__ = ["Compat", "NodeClass", "device_owner", "host_nodes", "node_texts", "runtime_owner"]

ROOT_NAME = "CallTreeRoot"
BACKWARD_SUFFIX = ".backward"


def host_nodes(rank_trace: RankTrace, compat: Compat | None = None) -> pl.DataFrame:
    """Return the nodes of the host trees: the operators, annotations, modules and steps of each thread.

    A node contains another of the same thread as `call_stacks` has it, so what outlives the range it began in is its
    sibling. Module calls are nodes; other Python functions, runtime calls, and annotations inside an operator are not.
    The plugin instead drops what outlives its parent, drops most annotations, joins threads of the same number, and
    puts a root around each.

    Returns:
        Sorted so that a node stands behind all around it and before what follows it (tree, start, longest first):

        node          uint32  the row number
        event_index   uint32  null on roots and on the plugin's backward nodes, which are no events
        tree          int32   the thread
        parent        int64   row of the node around it; -1 where there is none
        depth         int32   number of nodes around it
        node_class    uint8   NodeClass
        name          uint32  string id; null on roots; on backward nodes that of the module
        start_ns      int64
        end_ns        int64
        of_parent_ns  int64   time it takes away from the parent: that in which no earlier sibling ran
        is_counted    bool    an operator of the operator tables: no step, data loader, optimizer or DDP wrapper
    """
    return rank_trace.derive(own_host_nodes if compat is None else plugin_host_nodes)


def runtime_owner(rank_trace: RankTrace, compat: Compat | None = None) -> pl.DataFrame:
    """Return the node to which each runtime or driver call belongs.

    It is the innermost one around the call. The plugin knows no driver calls, and goes by the external id alone.

    Returns:
        event_index   uint32
        node          int64   row of `host_nodes`; -1 where none is known
        of_parent_ns  int64   time the call takes away from the node; 0 where it is part of another call
    """
    return rank_trace.derive(own_runtime_owner if compat is None else plugin_runtime_owner)


def device_owner(rank_trace: RankTrace, compat: Compat | None = None) -> pl.DataFrame:
    """Return the node that caused each kernel, copy and memset.

    It is the innermost node around the launch, on the same thread; where no operator is around the launch, or the
    launch is unknown, the operator with the same external id. The plugin goes by `runtime_owner`, lists kernels whose
    launch it does not know once for each thread with steps, and leaves the others out.

    Returns:
        event_index   uint32  of the device row
        node          int64   row of `host_nodes`; -1 where none is known
        operator      int64   row of the nearest operator, the node itself or around it; -1 where there is none; the
                              plugin takes the node whatever it is
        launch_index  uint32  the call; null where it is not known
    """
    return rank_trace.derive(own_device_owner if compat is None else plugin_device_owner)


def node_texts(rank_trace: RankTrace, nodes: pl.DataFrame) -> pl.Series:
    """Return the names of these rows of `host_nodes` as people read them."""
    is_backward = pl.col("node_class") == NodeClass.BACKWARD
    text = pl.when(is_backward).then(pl.col("name") + BACKWARD_SUFFIX).otherwise("name").fill_null(ROOT_NAME)
    return nodes.select("node_class", rank_trace.texts(nodes["name"])).select(text.alias("name"))["name"]
