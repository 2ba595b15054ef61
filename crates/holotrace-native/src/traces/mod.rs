//! Traces for Python: reading them into tables, looking at their beginning, and copying them with changes.

pub(crate) mod arrow;
pub(crate) mod edit;
pub(crate) mod gzip_writer;
pub(crate) mod inspect;
pub(crate) mod place;
pub(crate) mod read;
mod source;
mod supervised;
