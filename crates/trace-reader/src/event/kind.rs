//! The kind of an event, from its category in any version of the profiler.

/// The kinds and their codes; `holotrace.schema.EventKind` in Python has the same codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    #[default]
    Other = 0,
    CpuOp = 1,
    UserAnnotation = 2,
    GpuUserAnnotation = 3,
    GpuMemcpy = 4,
    GpuMemset = 5,
    Kernel = 6,
    Runtime = 7,
    Driver = 8,
    Instant = 9,
    Memory = 10,
    PythonFunction = 11,
    Overhead = 12,
    Synchronisation = 13,
    CudaEvent = 14,
    ProfilerRange = 15,
    CollectiveComm = 16,
    Accelerator = 17,
    TraceSpan = 18,
}

impl Kind {
    /// The kind of the events in a category; the category may have its current name, an older name or a vendor's name.
    pub(crate) fn of_category(category: &[u8]) -> Self {
        match category {
            b"cpu_op" | b"Operator" | b"operator" => Self::CpuOp,
            b"user_annotation" => Self::UserAnnotation,
            b"gpu_user_annotation" | b"gpu_user_Annotation" => Self::GpuUserAnnotation,
            b"gpu_memcpy" | b"Memcpy" | b"memcpy" => Self::GpuMemcpy,
            b"gpu_memset" | b"Memset" | b"memset" => Self::GpuMemset,
            b"kernel" | b"Kernel" => Self::Kernel,
            // Despite its name, Kineto's HPU_OP runs on the host of a Gaudi device.
            b"cuda_runtime"
            | b"Runtime"
            | b"runtime"
            | b"mtia_runtime"
            | b"xpu_runtime"
            | b"glow_runtime"
            | b"privateuse1_runtime"
            | b"hpu_op" => Self::Runtime,
            b"cuda_driver" | b"xpu_driver" | b"privateuse1_driver" => Self::Driver,
            b"cpu_instant_event" => Self::Instant,
            b"Memory" => Self::Memory,
            b"python_function" => Self::PythonFunction,
            b"overhead" => Self::Overhead,
            b"cuda_sync" | b"xpu_sync" => Self::Synchronisation,
            b"cuda_event" => Self::CudaEvent,
            b"cuda_profiler_range" | b"xpu_scope_profiler" => Self::ProfilerRange,
            b"collective_comm" => Self::CollectiveComm,
            b"mtia_ccp_events" => Self::Accelerator,
            b"Trace" => Self::TraceSpan,
            _ => Self::Other,
        }
    }

    /// The legacy autograd profiler wrote no categories; the process name distinguishes host and device.
    pub(crate) fn of_legacy_process(process: &[u8]) -> Self {
        match process {
            b"CPU functions" => Self::CpuOp,
            b"CUDA functions" => Self::Kernel,
            _ => Self::Other,
        }
    }

    /// Whether the pid and tid of an event of this kind are a device and a stream.
    pub(crate) fn is_on_device(self) -> bool {
        matches!(
            self,
            Self::GpuUserAnnotation
                | Self::GpuMemcpy
                | Self::GpuMemset
                | Self::Kernel
                | Self::Synchronisation
                | Self::CudaEvent
                | Self::ProfilerRange
                | Self::CollectiveComm
                | Self::Accelerator
        )
    }
}
