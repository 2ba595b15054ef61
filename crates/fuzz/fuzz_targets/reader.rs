//! The reader never panics, and agrees with serde_json on every text that serde_json accepts.
#![no_main]

#[path = "../../trace-reader/tests/oracle/mod.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((&first, bytes)) = data.split_first() {
        oracle::check(bytes, 16 * (usize::from(first) + 1));
    }
});
