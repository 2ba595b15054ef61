//! Sources of a trace's bytes: a local file, or a Python object that fetches them from elsewhere.

use std::io::{self, Read};
use std::path::PathBuf;

use pyo3::prelude::*;
use trace_reader::Input;

use super::supervised::Raised;
use crate::error::read_error;

/// The `source` argument of the module's functions.
#[derive(FromPyObject)]
pub(crate) enum Source {
    #[pyo3(transparent)]
    File(PathBuf),
    #[pyo3(transparent)]
    Stream(Py<PyAny>),
}

impl Source {
    /// Open the source; `raised` will contain the first exception that the stream raises while it is read.
    pub(crate) fn input(&self, py: Python<'_>, raised: &Raised) -> PyResult<Input> {
        match self {
            Self::File(path) => py.detach(|| Input::open(path)).map_err(read_error),
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

    /// Close a stream, to end a `read` that waits for bytes.
    pub(crate) fn close(&self, py: Python<'_>) {
        if let Self::Stream(stream) = self {
            // If reading ended with an exception, the caller gets this exception, not one that closing the stream
            // raises.
            let _ = stream.call_method0(py, "close");
        }
    }
}

/// The bytes of a Python stream. Holds the GIL only to request a piece of a few MiB and to copy the piece.
struct Pieces {
    stream: Py<PyAny>,
    piece: Vec<u8>,
    read: usize,
    raised: Raised,
}

impl Pieces {
    fn next(&mut self) -> PyResult<()> {
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
            self.next().map_err(|error| {
                let message = error.to_string();
                self.raised.keep(error);
                io::Error::other(message)
            })?;
        }
        let count = buffer.len().min(self.piece.len() - self.read);
        buffer[..count].copy_from_slice(&self.piece[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
