//! The destination of each known arg: the table, the column, and how to read its value.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::json::decoded;
use crate::tables::schema::{columns_of, Table};

/// The destination of an arg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One column of a side table, or one optional column of `events`.
    Column { table: Table, column: u8 },
    /// A column of streams. A stream may also be hexadecimal text, or −1 written as an unsigned number.
    Stream { table: Table, column: u8 },
    /// A column of times that Kineto's XPU plugin writes for Intel GPUs; stored in nanoseconds.
    Time { table: Table, column: u8 },
    /// Three adjacent columns that hold a list of three numbers.
    Triple { table: Table, column: u8 },
}

impl Target {
    /// Whether the target is a column of `events`.
    #[inline]
    pub(crate) fn is_of_events(self) -> bool {
        let (Self::Column { table, .. }
        | Self::Stream { table, .. }
        | Self::Time { table, .. }
        | Self::Triple { table, .. }) = self;
        table == Events
    }
}

/// The rows to which an entry of [`COLUMNS`] applies; a few keys mean different things on the host and on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Any,
    Host,
    Device,
}

use On::{Any, Device, Host};
use Table::{
    Collectives, CompiledKernels, Copies, Events, Kernels, Memory, Metadata, Mtia, OperatorInputs,
    OperatorSources, Operators, PythonFrames, RuntimeCalls, Synchronisations, Xpu,
};

/// Each known arg: its key, the rows that may have it, and the table and column that store it. If a key was spelled
/// differently in different years, all its spellings share a column.
const COLUMNS: &[(&str, On, Table, &str)] = &[
    ("correlation", Any, Events, "correlation"),
    ("External id", Any, Events, "external_id"),
    ("external id", Any, Events, "external_id"),
    ("device", Any, Events, "device"),
    // Operators, annotations.
    ("Ev Idx", Any, Operators, "evaluation_index"),
    ("Profiler Event Index", Any, Operators, "evaluation_index"),
    ("Record function id", Any, Operators, "record_function_id"),
    ("Sequence number", Any, Operators, "sequence_number"),
    ("Fwd thread id", Any, Operators, "forward_thread_id"),
    ("Input Dims", Any, OperatorInputs, "input_dims"),
    ("Input dims", Any, OperatorInputs, "input_dims"),
    ("Input Strides", Any, OperatorInputs, "input_strides"),
    ("Input type", Any, OperatorInputs, "input_types"),
    ("Concrete Inputs", Any, OperatorInputs, "concrete_inputs"),
    ("Call stack", Any, OperatorSources, "call_stack"),
    ("Module Hierarchy", Any, OperatorSources, "module_hierarchy"),
    ("Backend", Any, OperatorSources, "backend"),
    ("CallFrom", Any, OperatorSources, "called_from"),
    ("finished", Any, OperatorSources, "finished"),
    ("scope", Any, OperatorSources, "scope"),
    ("Device", Any, OperatorSources, "recorded_device"),
    ("Trace name", Any, OperatorSources, "trace_name"),
    ("Trace iteration", Any, OperatorSources, "trace_iteration"),
    ("Op count", Any, OperatorSources, "op_count"),
    ("instructions", Any, OperatorSources, "instructions"),
    // Triton and inductor launches.
    ("kernel_file", Any, CompiledKernels, "kernel_file"),
    ("kernel_hash", Any, CompiledKernels, "kernel_hash"),
    ("kernel_backend", Any, CompiledKernels, "kernel_backend"),
    ("kernel_name", Any, CompiledKernels, "kernel_name"),
    ("kernel_kwargs", Any, CompiledKernels, "kernel_kwargs"),
    ("num_warps", Any, CompiledKernels, "num_warps"),
    ("num_stages", Any, CompiledKernels, "num_stages"),
    ("kernel_flop", Any, CompiledKernels, "kernel_flop"),
    ("kernel_num_gb", Any, CompiledKernels, "kernel_gigabytes"),
    // Collectives.
    ("Collective name", Any, Collectives, "collective"),
    ("dtype", Any, Collectives, "dtype"),
    ("In msg nelems", Any, Collectives, "in_elements"),
    ("Out msg nelems", Any, Collectives, "out_elements"),
    ("In split size", Any, Collectives, "in_split_sizes"),
    ("Out split size", Any, Collectives, "out_split_sizes"),
    ("Group size", Any, Collectives, "group_size"),
    ("Process Group Name", Any, Collectives, "group_name"),
    ("Process Group ID", Any, Collectives, "group_name"),
    ("Process Group Description", Any, Collectives, "group_description"),
    ("Process Group Ranks", Any, Collectives, "group_ranks"),
    ("Src Rank", Any, Collectives, "source_rank"),
    ("Dst Rank", Any, Collectives, "destination_rank"),
    ("Rank", Any, Collectives, "rank"),
    ("Seq", Any, Collectives, "sequence"),
    ("Comms Id", Any, Collectives, "communication_id"),
    ("Is asynchronized op", Any, Collectives, "is_asynchronous"),
    ("Global rank start", Any, Collectives, "global_rank_start"),
    ("Global rank stride", Any, Collectives, "global_rank_stride"),
    ("Input Tensors start", Any, Collectives, "input_tensors_start"),
    ("Output Tensors start", Any, Collectives, "output_tensors_start"),
    ("Communicator_id", Any, Collectives, "communicator_id"),
    // Device rows.
    ("context", Any, Kernels, "context"),
    ("queued", Any, Kernels, "queued_ns"),
    ("registers per thread", Any, Kernels, "registers_per_thread"),
    ("shared memory", Any, Kernels, "shared_memory_bytes"),
    ("blocks per SM", Any, Kernels, "blocks_per_sm"),
    ("warps per SM", Any, Kernels, "warps_per_sm"),
    ("est. achieved occupancy %", Any, Kernels, "occupancy_percent"),
    ("theoretical occupancy %", Any, Kernels, "occupancy_percent"),
    ("occupancy", Any, Kernels, "occupancy"),
    ("graph id", Any, Kernels, "graph_id"),
    ("graph node id", Any, Kernels, "graph_node_id"),
    ("priority", Any, Kernels, "priority"),
    ("channel", Any, Kernels, "channel"),
    ("channel_type", Any, Kernels, "channel_type"),
    ("hsa_queue", Any, Kernels, "hsa_queue"),
    ("kind", Any, Kernels, "activity_kind"),
    // Copies and sets.
    ("bytes", Any, Copies, "bytes"),
    ("memory bandwidth (GB/s)", Any, Copies, "bandwidth_gb_per_s"),
    ("fromDevice", Any, Copies, "from_device"),
    ("inDevice", Any, Copies, "in_device"),
    ("toDevice", Any, Copies, "to_device"),
    ("fromContext", Any, Copies, "from_context"),
    ("inContext", Any, Copies, "in_context"),
    ("toContext", Any, Copies, "to_context"),
    ("copy kind", Any, Copies, "copy_kind"),
    ("src kind", Any, Copies, "source_kind"),
    ("dst kind", Any, Copies, "destination_kind"),
    ("flags", Any, Copies, "flags"),
    ("value", Any, Copies, "value"),
    ("memory kind", Any, Copies, "memory_kind"),
    ("src", Any, Copies, "source"),
    ("dst", Any, Copies, "destination"),
    ("size", Host, Copies, "bytes"),
    // Runtime and driver calls.
    ("cbid", Any, RuntimeCalls, "callback_id"),
    ("cid", Any, RuntimeCalls, "callback_id"),
    ("kernel", Host, RuntimeCalls, "launched_kernel"),
    ("ptr", Host, RuntimeCalls, "pointer"),
    ("external ts", Any, RuntimeCalls, "external_timestamp_us"),
    // Python.
    ("Python id", Any, PythonFrames, "python_id"),
    ("Python parent id", Any, PythonFrames, "python_parent_id"),
    ("Python module id", Any, PythonFrames, "python_module_id"),
    ("Python thread", Any, PythonFrames, "python_thread"),
    // Memory.
    ("Device Type", Any, Memory, "device_type"),
    ("Device Id", Any, Memory, "device_id"),
    ("Addr", Any, Memory, "address"),
    ("Bytes", Any, Memory, "bytes"),
    ("Total Allocated", Any, Memory, "total_allocated"),
    ("Total Reserved", Any, Memory, "total_reserved"),
    // Synchronisation.
    ("cuda_sync_kind", Any, Synchronisations, "sync_kind"),
    ("wait_on_cuda_event_record_corr_id", Any, Synchronisations, "wait_on_record_correlation"),
    ("wait_on_cuda_event_id", Any, Synchronisations, "wait_on_event_id"),
    ("event_id", Any, Synchronisations, "event_id"),
    // Intel.
    ("sycl queue", Any, Xpu, "sycl_queue"),
    ("l0 queue", Any, Xpu, "l0_queue"),
    ("l0 call", Any, Xpu, "l0_call"),
    ("kernel_id", Any, Xpu, "kernel_id"),
    ("sycl_node_id", Any, Xpu, "sycl_node_id"),
    ("sycl_invocation_id", Any, Xpu, "sycl_invocation_id"),
    ("source_file_name", Any, Xpu, "source_file_name"),
    ("source_line_number", Any, Xpu, "source_line_number"),
    ("memory opration id", Any, Xpu, "memory_operation_id"),
    ("memory operation id", Any, Xpu, "memory_operation_id"),
    ("Type", Device, Xpu, "sync_type"),
    ("Context_handle", Any, Xpu, "context_handle"),
    ("Queue_handle", Any, Xpu, "queue_handle"),
    ("Event_handle", Any, Xpu, "event_handle"),
    ("Number_wait_events", Any, Xpu, "wait_event_count"),
    ("Return_code", Any, Xpu, "return_code"),
    ("overhead cost", Any, Xpu, "overhead_cost"),
    ("overhead occupancy", Any, Xpu, "overhead_occupancy"),
    ("overhead count", Any, Xpu, "overhead_count"),
    // MTIA.
    ("direction", Any, Mtia, "direction"),
    ("size", Device, Mtia, "size"),
    ("k_work_ptr", Any, Mtia, "work_pointer"),
    ("packet_ptr", Any, Mtia, "packet_pointer"),
    ("sqid", Any, Mtia, "submission_queue"),
    ("column", Any, Mtia, "column"),
    ("row", Any, Mtia, "row"),
    ("seq_num", Any, Mtia, "sequence_number"),
    ("host_ctx", Any, Mtia, "host_context"),
    ("cmd_name", Any, Mtia, "command"),
    ("mem size", Any, Mtia, "memory_size"),
    ("executable_name", Any, Mtia, "executable_name"),
];

const STREAMS: &[(&str, Table, &str)] = &[
    ("stream", Events, "stream"),
    ("wait_on_stream", Synchronisations, "wait_on_stream"),
    ("stream_id", Mtia, "stream_id"),
];

const TIMES: &[(&str, Table, &str)] = &[
    ("appended_rel_to_start", Xpu, "appended_after_ns"),
    ("submitted_rel_to_start", Xpu, "submitted_after_ns"),
    ("sycl_task_begin_rel_to_start", Xpu, "sycl_task_begin_after_ns"),
    ("sycl_enqk_begin_rel_to_start", Xpu, "sycl_enqueue_begin_after_ns"),
    ("appended", Xpu, "appended_ns"),
    ("submitted", Xpu, "submitted_ns"),
    ("sycl_task_begin", Xpu, "sycl_task_begin_ns"),
    ("sycl_enqk_begin", Xpu, "sycl_enqueue_begin_ns"),
];

const TRIPLES: &[(&str, Table, &str)] = &[("grid", Kernels, "grid_x"), ("block", Kernels, "block_x")];

/// Args of metadata events.
const METADATA: &[(&str, &str)] = &[("name", "value"), ("labels", "value"), ("sort_index", "sort_index")];

type Targets = FxHashMap<&'static [u8], Target>;

/// Where each arg of one kind of row is stored, by the arg's key.
pub(crate) struct Args(Targets);

impl Args {
    /// The destination of the arg with this key; `None` if the arg is unknown. The key may contain escapes.
    pub(crate) fn target(&self, key: &[u8]) -> Option<Target> {
        match self.0.get(key) {
            None if key.contains(&b'\\') => self.0.get(decoded(key).0.as_bytes()).copied(),
            target => target.copied(),
        }
    }

    fn of_rows(rows: On) -> Self {
        let mut targets = Targets::default();
        for &(key, on, table, column) in COLUMNS {
            if on == Any || on == rows {
                targets.insert(key.as_bytes(), Target::Column { table, column: position(table, column) });
            }
        }
        for &(key, table, column) in STREAMS {
            targets.insert(key.as_bytes(), Target::Stream { table, column: position(table, column) });
        }
        for &(key, table, column) in TIMES {
            targets.insert(key.as_bytes(), Target::Time { table, column: position(table, column) });
        }
        for &(key, table, column) in TRIPLES {
            targets.insert(key.as_bytes(), Target::Triple { table, column: position(table, column) });
        }
        Self(targets)
    }
}

/// Position of a column in its table; 0, the position of `event_index`, if the schema lacks the column.
fn position(table: Table, column: &str) -> u8 {
    columns_of(table).iter().position(|&(name, _)| name == column).map_or(0, |at| at as u8)
}

/// Args of rows on the host.
pub(crate) static ON_HOST: LazyLock<Args> = LazyLock::new(|| Args::of_rows(Host));
/// Args of rows on a device.
pub(crate) static ON_DEVICE: LazyLock<Args> = LazyLock::new(|| Args::of_rows(Device));
/// Args of metadata rows.
pub(crate) static OF_METADATA: LazyLock<Args> = LazyLock::new(|| {
    let column = |column| Target::Column { table: Metadata, column: position(Metadata, column) };
    Args(METADATA.iter().map(|&(key, name)| (key.as_bytes(), column(name))).collect())
});

/// The destination of a grid that is not a list of three numbers, such as `grid(100,)`.
pub(crate) static GRID_TEXT: LazyLock<Target> = LazyLock::new(|| Target::Column {
    table: CompiledKernels,
    column: position(CompiledKernels, "grid_text"),
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Every target column exists in the schema. The values of a missing column would overwrite
    /// column 0, `event_index`.
    #[test]
    fn every_column_exists() {
        for args in [&*ON_HOST, &*ON_DEVICE, &*OF_METADATA] {
            for (key, target) in &args.0 {
                let (Target::Column { column, .. }
                | Target::Stream { column, .. }
                | Target::Time { column, .. }
                | Target::Triple { column, .. }) = *target;
                assert_ne!(column, 0, "{}", String::from_utf8_lossy(key));
            }
        }
    }
}
