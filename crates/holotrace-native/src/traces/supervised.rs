//! Reading on a second thread, while the calling thread handles signals and reports progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use trace_reader::{Input, ReadError};

use super::source::Source;
use crate::error::read_error;

/// Interval at which the calling thread handles signals and reports progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// State that the two threads share: the progress, and whether to continue.
#[derive(Default)]
pub(crate) struct Watch {
    done: AtomicU64,
    total: AtomicU64,
    is_stopped: AtomicBool,
}

impl Watch {
    /// Records the progress and returns whether to continue.
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

/// The first exception that Python raised during the reading.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The exception that Python raised, unchanged; if there was none, the exception for `error`.
    pub(crate) fn or(&self, error: ReadError) -> PyErr {
        self.locked().take().unwrap_or_else(|| read_error(error))
    }

    /// Keep only the first exception, because it causes any later ones.
    pub(crate) fn keep(&self, error: PyErr) {
        self.locked().get_or_insert(error);
    }

    fn locked(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// Read on a second thread, while this thread handles signals and reports the progress.
    ///
    /// Calls `progress` with the number of bytes read so far and the total number of bytes. If a signal handler or
    /// `progress` raises an exception, the reading stops. The caller gets exceptions unchanged, including those that a
    /// Python stream raises while it is read.
    pub(crate) fn supervised<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        read: impl FnOnce(Input, &Watch) -> Result<T, ReadError> + Send,
    ) -> PyResult<T> {
        let raised = &Raised::default();
        let watch = &Watch::default();
        let input = self.input(py, raised)?;
        let (sender, receiver) = channel();
        py.detach(move || {
            thread::scope(|scope| {
                let reader = scope.spawn(move || {
                    // Sending cannot fail: the receiver outlives this thread.
                    let _ = sender.send(read(input, watch));
                });
                let answer = loop {
                    match receiver.recv_timeout(LOOK_EVERY) {
                        Err(RecvTimeoutError::Timeout) => self.look(progress, watch, raised),
                        Ok(answer) => break answer,
                        Err(RecvTimeoutError::Disconnected) => break Err(ReadError::Stopped),
                    }
                };
                // This last call reports the final progress.
                self.look(progress, watch, raised);
                reader.join().map_err(|_| {
                    PyRuntimeError::new_err(
                        "the thread that reads the trace failed; please report this with the file",
                    )
                })?;
                let answer = if watch.goes_on() { answer } else { Err(ReadError::Stopped) };
                answer.map_err(|error| raised.or(error))
            })
        })
    }

    /// Handle signals and report the progress; if this raises an exception, stop reading.
    fn look(&self, progress: Option<&Py<PyAny>>, watch: &Watch, raised: &Raised) {
        if !watch.goes_on() {
            return;
        }
        Python::attach(|py| {
            let reported = py.check_signals().and_then(|()| match progress {
                Some(progress) => progress.call1(py, watch.progress()).map(|_| ()),
                None => Ok(()),
            });
            if let Err(error) = reported {
                raised.keep(error);
                watch.stop();
                self.close(py);
            }
        });
    }
}
