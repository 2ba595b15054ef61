//! Where a trace comes from: a file of this machine, or a Python object that has its bytes brought from elsewhere.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The exception that Python raised when it was asked for bytes.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// That exception as it is, where there is one, or else the one for an error of the reader.
    pub(crate) fn or(&self, error: ReadError) -> PyErr {
        self.kept().take().unwrap_or_else(|| to_python(error))
    }

    fn keep(&self, error: PyErr) {
        *self.kept() = Some(error);
    }

    fn kept(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// Read without the GIL; an exception that came out of a stream goes back as it is.
    pub(crate) fn with_input<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(Input) -> Result<T, ReadError> + Send,
    ) -> PyResult<T> {
        let raised = Raised::default();
        let input = self.input(py, &raised)?;
        py.detach(|| read(input)).map_err(|error| raised.or(error))
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
