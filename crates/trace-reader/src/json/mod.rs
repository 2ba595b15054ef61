//! JSON text: values, strings, numbers, and the search for events.

mod cursor;
pub(crate) mod digits;
pub(crate) mod scan;
mod strings;
mod validity;
mod value;

pub(crate) use cursor::{is_plain_number, Broken, Cursor, Quotes};
pub(crate) use strings::{decoded, without_unescaping, Blemishes};
pub(crate) use validity::{expect_json, Unfit};
pub(crate) use value::{Raw, Shape};
