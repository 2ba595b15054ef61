//! Where a trace comes from: a file of this machine, or a Python object that has its bytes brought from elsewhere.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use trace_reader::{Input, ReadError};

use crate::error::to_python;

/// What the functions of the module take as `source`; see `_native.pyi`.
#[derive(FromPyObject)]
pub(crate) enum Source {
    #[pyo3(transparent)]
    File(PathBuf),
    #[pyo3(transparent)]
    Stream(Py<PyAny>),
}

/// How often signals are looked for while a file is read.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How far the reading is, and whether it goes on.
#[derive(Default)]
pub(crate) struct Watch {
    done: AtomicU64,
    total: AtomicU64,
    is_stopped: AtomicBool,
}

impl Watch {
    /// Say how far the reading is; false where it has to stop.
    pub(crate) fn reached(&self, done: u64, total: u64) -> bool {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.goes_on()
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

/// The exception that Python raised when it was asked for bytes, or while a file was read.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// That exception as it is, where there is one, or else the one for an error of the reader.
    pub(crate) fn or(&self, error: ReadError) -> PyErr {
        self.kept().take().unwrap_or_else(|| to_python(error))
    }

    /// Keep an exception, the first one: others follow from it.
    fn keep(&self, error: PyErr) {
        self.kept().get_or_insert(error);
    }

    fn kept(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// Read on another thread while this one looks for signals, and calls `progress` with the bytes read and their total.
    ///
    /// Whatever the reading does, an exception of a signal's handler ends it; so does one that `progress` raises. An
    /// exception that came out of a stream goes back as it is.
    pub(crate) fn read_while_python_looks<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        read: impl FnOnce(Input, &Watch) -> Result<T, ReadError> + Send,
    ) -> PyResult<T> {
        let raised = &Raised::default();
        let watch = &Watch::default();
        let input = self.input(py, raised)?;
        let (answer_in, answer_out) = channel();
        py.detach(move || {
            thread::scope(|scope| {
                let reader = scope.spawn(move || {
                    // Somebody always listens.
                    let _ = answer_in.send(read(input, watch));
                });
                let answer = loop {
                    match answer_out.recv_timeout(LOOK_EVERY) {
                        Err(RecvTimeoutError::Timeout) => self.look(progress, watch, raised),
                        Ok(answer) => break answer,
                        Err(RecvTimeoutError::Disconnected) => break Err(ReadError::Stopped),
                    }
                };
                // One more look: the last progress has to be shown.
                self.look(progress, watch, raised);
                reader.join().map_err(|_| PyRuntimeError::new_err("the reader failed"))?;
                let answer = if watch.goes_on() { answer } else { Err(ReadError::Stopped) };
                answer.map_err(|error| raised.or(error))
            })
        })
    }

    /// Let Python handle signals and show the progress; what it raises ends the reading.
    fn look(&self, progress: Option<&Py<PyAny>>, watch: &Watch, raised: &Raised) {
        if !watch.goes_on() {
            return;
        }
        Python::attach(|py| {
            let shown = py.check_signals().and_then(|()| match progress {
                Some(progress) => progress.call1(py, watch.progress()).map(|_| ()),
                None => Ok(()),
            });
            if let Err(error) = shown {
                raised.keep(error);
                watch.stop();
                self.stop(py);
            }
        });
    }

    pub(crate) fn input(&self, py: Python<'_>, raised: &Raised) -> PyResult<Input> {
        match self {
            Self::File(path) => py.detach(|| Input::open(path)).map_err(to_python),
            Self::Stream(stream) => {
                let name = stream.getattr(py, "name")?.extract(py)?;
                let byte_count = stream.getattr(py, "byte_count")?.extract(py)?;
                let pieces = Pieces {
                    stream: stream.clone_ref(py),
                    piece: Vec::new(),
                    read: 0,
                    raised: raised.clone(),
                };
                Ok(Input::new(name, Box::new(pieces), byte_count))
            }
        }
    }

    /// Let a stream that waits for bytes wait no longer.
    pub(crate) fn stop(&self, py: Python<'_>) {
        if let Self::Stream(stream) = self {
            // Something was raised already, and that is what the caller hears of.
            let _ = stream.call_method0(py, "close");
        }
    }
}

/// The bytes of a stream; the GIL is held only while a piece of some MiB is asked for and copied.
struct Pieces {
    stream: Py<PyAny>,
    piece: Vec<u8>,
    read: usize,
    raised: Raised,
}

impl Pieces {
    fn ask(&mut self) -> PyResult<()> {
        Python::attach(|py| {
            let answer = self.stream.call_method0(py, "read")?;
            self.piece.clear();
            self.piece.extend_from_slice(answer.extract::<&[u8]>(py)?);
            self.read = 0;
            Ok(())
        })
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() {
            self.ask().map_err(|error| {
                let told = io::Error::other(error.to_string());
                self.raised.keep(error);
                told
            })?;
        }
        let count = buffer.len().min(self.piece.len() - self.read);
        buffer[..count].copy_from_slice(&self.piece[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
