//! Reads a trace into a folder and prints the time it took: `cargo run --release --example read -- TRACE FOLDER`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use trace_reader::{read, FolderSink, Input, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, trace, folder] = arguments.as_slice() else { return Err("usage: read TRACE FOLDER".into()) };
    let mut sink = FolderSink::new(PathBuf::from(folder))?;
    let start = Instant::now();
    let input = Input::open(Path::new(trace))?;
    let trace = read(input, &mut sink, Options::default(), &mut |_, _| true)?;
    println!("{:.3} s {}", start.elapsed().as_secs_f64(), trace.health);
    Ok(())
}
