//! The schema of the tables. `holotrace.schema` in Python documents each column; a test compares it with
//! this file.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// The storage type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Signed 64 bits.
    Int64,
    /// Signed 32 bits.
    Int32,
    /// Unsigned 32 bits.
    UInt32,
    /// Unsigned 64 bits.
    UInt64,
    /// Unsigned 8 bits.
    UInt8,
    /// IEEE double.
    Float64,
    /// True or false.
    Bool,
    /// Row number of a text in the table `strings`.
    Text,
    /// Row number of a JSON text in the table `strings`.
    Json,
    /// Text that the column itself contains, not the table `strings`.
    InPlace,
}

impl ColumnType {
    /// The name of the type in the Python schema.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::UInt8 => "uint8",
            Self::Float64 => "float64",
            Self::Bool => "bool",
            Self::Text => "string",
            Self::Json => "json",
            Self::InPlace => "text",
        }
    }

    fn arrow(self) -> DataType {
        match self {
            Self::Int64 => DataType::Int64,
            Self::Int32 => DataType::Int32,
            Self::UInt32 | Self::Text | Self::Json => DataType::UInt32,
            Self::UInt64 => DataType::UInt64,
            Self::UInt8 => DataType::UInt8,
            Self::Float64 => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::InPlace => DataType::LargeUtf8,
        }
    }
}

macro_rules! tables {
    ($($name:ident = $text:literal { $($column:ident: $type:ident,)* })*) => {
        /// A table of one rank.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Table { $($name,)* }

        impl Table {
            /// All tables.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The table's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }

        /// Names and types of a table's columns.
        #[must_use]
        pub fn columns_of(table: Table) -> &'static [(&'static str, ColumnType)] {
            match table {
                $(Table::$name => &[$((stringify!($column), ColumnType::$type),)*],)*
            }
        }
    };
}

tables! {
    Events = "events" {
        event_index: UInt32, start_ns: Int64, duration_ns: Int64, kind: UInt8, category: Text, name: Text,
        track_id: UInt32, device: Int32, stream: Int64, correlation: Int64, external_id: Int64,
    }
    Tracks = "tracks" {
        track_id: UInt32, process_id: Int64, process_text: Text, thread_id: Int64, thread_text: Text,
    }
    Strings = "strings" { text: InPlace, }
    Metadata = "metadata" { event_index: UInt32, track_id: UInt32, name: Text, value: Text, sort_index: Int64, }
    Flows = "flows" {
        event_index: UInt32, start_ns: Int64, flow_id: Int64, is_start: Bool, category: Text, name: Text,
        track_id: UInt32,
    }
    Counters = "counters" {
        event_index: UInt32, start_ns: Int64, name: Text, track_id: UInt32, key: Text, value: Float64,
    }
    Operators = "operators" {
        event_index: UInt32, evaluation_index: Int64, record_function_id: Int64, sequence_number: Int64,
        forward_thread_id: Int64,
    }
    OperatorInputs = "operator_inputs" {
        event_index: UInt32, input_dims: Json, input_strides: Json, input_types: Json, concrete_inputs: Json,
    }
    OperatorSources = "operator_sources" {
        event_index: UInt32, call_stack: Text, module_hierarchy: Text, backend: Text, called_from: Text,
        finished: Bool, scope: Text, recorded_device: Int64, trace_name: Text, trace_iteration: Int64, op_count: Int64, instructions: Int64,
    }
    CompiledKernels = "compiled_kernels" {
        event_index: UInt32, kernel_file: Text, kernel_hash: Text, kernel_backend: Text, kernel_name: Text,
        kernel_kwargs: Text, num_warps: Int64, num_stages: Int64, kernel_flop: Float64, kernel_gigabytes: Float64,
        grid_text: Text,
    }
    Collectives = "collectives" {
        event_index: UInt32, collective: Text, dtype: Text, in_elements: Int64, out_elements: Int64,
        in_split_sizes: Text, out_split_sizes: Text, group_size: Int64, group_name: Text, group_description: Text,
        group_ranks: Text, source_rank: Int64, destination_rank: Int64, rank: Int64, sequence: Int64,
        communication_id: UInt64, is_asynchronous: Bool, global_rank_start: Int64, global_rank_stride: Int64,
        input_tensors_start: Text, output_tensors_start: Text, communicator_id: Text,
    }
    Kernels = "kernels" {
        event_index: UInt32, context: Text, queued_ns: Int64, registers_per_thread: Int64,
        shared_memory_bytes: Int64, blocks_per_sm: Float64, warps_per_sm: Float64, grid_x: Int64, grid_y: Int64,
        grid_z: Int64, block_x: Int64, block_y: Int64, block_z: Int64, occupancy_percent: Float64, occupancy: Json,
        graph_id: Int64, graph_node_id: UInt64, priority: Int64, channel: Int64, channel_type: Int64,
        hsa_queue: Text, activity_kind: Text,
    }
    Copies = "copies" {
        event_index: UInt32, bytes: Int64, bandwidth_gb_per_s: Float64, from_device: Int64, in_device: Int64,
        to_device: Int64, from_context: Int64, in_context: Int64, to_context: Int64, copy_kind: Text,
        source_kind: Text, destination_kind: Text, flags: Int64, value: Int64, memory_kind: Text, source: Text,
        destination: Text,
    }
    RuntimeCalls = "runtime_calls" {
        event_index: UInt32, callback_id: Int64, launched_kernel: Text, pointer: Text, external_timestamp_us: Int64,
    }
    PythonFrames = "python_frames" {
        event_index: UInt32, python_id: Int64, python_parent_id: Int64, python_module_id: Int64,
        python_thread: Int64,
    }
    Memory = "memory" {
        event_index: UInt32, device_type: Int64, device_id: Int64, address: UInt64, bytes: Int64,
        total_allocated: Int64, total_reserved: Int64,
    }
    Synchronisations = "synchronisations" {
        event_index: UInt32, sync_kind: Text, wait_on_stream: Int64, wait_on_record_correlation: Int64,
        wait_on_event_id: Int64, event_id: Int64,
    }
    Xpu = "xpu" {
        event_index: UInt32, sycl_queue: Text, l0_queue: Text, l0_call: Text, appended_ns: Int64,
        submitted_ns: Int64, sycl_task_begin_ns: Int64, sycl_enqueue_begin_ns: Int64, appended_after_ns: Int64,
        submitted_after_ns: Int64, sycl_task_begin_after_ns: Int64, sycl_enqueue_begin_after_ns: Int64,
        kernel_id: Int64, sycl_node_id: Int64, sycl_invocation_id: Int64, source_file_name: Text,
        source_line_number: Int64, memory_operation_id: Int64, sync_type: Text, context_handle: Text,
        queue_handle: Text, event_handle: Text, wait_event_count: Int64, return_code: Text, overhead_cost: Text,
        overhead_occupancy: Text, overhead_count: Int64,
    }
    Mtia = "mtia" {
        event_index: UInt32, direction: Text, size: Int64, work_pointer: UInt64, packet_pointer: UInt64,
        submission_queue: Int64, column: Text, row: Text, sequence_number: Int64, host_context: Int64,
        command: Text, stream_id: Int64, memory_size: Text, executable_name: Text,
    }
    ExtraArgs = "extra_args" { event_index: UInt32, json: InPlace, }
}

/// Columns that are never null in any table; the only exception is `name` in the tables of [`NAME_MAY_BE_NULL`].
const NEVER_NULL: [&str; 9] =
    ["event_index", "start_ns", "duration_ns", "kind", "track_id", "is_start", "text", "json", "name"];

/// Tables in which `name` may be null.
const NAME_MAY_BE_NULL: [Table; 3] = [Table::Metadata, Table::Flows, Table::Counters];

fn is_nullable(table: Table, column: &str) -> bool {
    !NEVER_NULL.contains(&column) || (column == "name" && NAME_MAY_BE_NULL.contains(&table))
}

/// The Arrow schema of a table.
#[must_use]
pub fn schema_of(table: Table) -> SchemaRef {
    Arc::new(Schema::new(
        columns_of(table)
            .iter()
            .map(|&(name, kind)| Field::new(name, kind.arrow(), is_nullable(table, name)))
            .collect::<Vec<_>>(),
    ))
}
