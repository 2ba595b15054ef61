//! XXH3 checksums of bytes, of files, and of single columns of Arrow IPC files.
//!
//! Each byte of an Arrow file is covered by exactly one checksum: that of its column, or that of the structure (schema,
//! lengths, offsets). A reader of a few columns therefore checks only the structure and these columns, and does not
//! read the rest of the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use arrow_ipc::{root_as_footer, root_as_message, Field, Type};
use xxhash_rust::xxh3::{xxh3_64, Xxh3};

const BUFFER_BYTES: usize = 1 << 16;
const MAGIC: &[u8] = b"ARROW1";
/// <https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format>
const CONTINUATION: [u8; 4] = [0xFF; 4];

/// The checksum of bytes in memory.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The checksum of a file, equal to [`of_bytes`] of its content.
///
/// # Errors
///
/// An error if the file cannot be read.
pub fn of_file(path: &Path) -> io::Result<u64> {
    let mut file = Ranges::open(path)?;
    let mut sum = Xxh3::new();
    let all = 0..file.length;
    file.add(all, &mut sum)?;
    Ok(sum.digest())
}

/// The checksums of an Arrow IPC file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrowChecksums {
    /// The checksum of everything except the buffers of columns.
    pub structure: u64,
    /// The checksums of the wanted columns, in the order of the file.
    pub columns: Vec<u64>,
}

/// Return the checksums of an Arrow IPC file: one of its structure, and one of each column whose number `is_wanted`
/// accepts.
///
/// # Errors
///
/// An error if the file cannot be read; [`io::ErrorKind::InvalidData`] if it is not an Arrow file of flat columns.
pub fn of_arrow_file(path: &Path, is_wanted: impl Fn(usize) -> bool) -> io::Result<ArrowChecksums> {
    let mut file = Ranges::open(path)?;
    let layout = Layout::of(&mut file)?;
    let mut structure = Xxh3::new();
    let mut columns = vec![Xxh3::new(); layout.buffer_counts.len()];
    let mut done = 0;
    for batch in &layout.batches {
        let starts = batch.column_starts(&mut file, &layout.buffer_counts)?;
        file.add(done..batch.body.start, &mut structure)?;
        for (column, range) in ranges(&starts, batch.body.end).enumerate() {
            if is_wanted(column) {
                file.add(range, &mut columns[column])?;
            }
        }
        done = batch.body.end;
    }
    file.add(done..file.length, &mut structure)?;
    let wanted = columns.iter().enumerate().filter(|(column, _)| is_wanted(*column));
    Ok(ArrowChecksums {
        structure: structure.digest(),
        columns: wanted.map(|(_, sum)| sum.digest()).collect(),
    })
}

/// The ranges from each start to the next; the last range ends at `end`.
fn ranges(starts: &[u64], end: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end)
}

/// The positions of the batches in an Arrow file.
struct Layout {
    /// The number of buffers of each column, the same in every batch.
    buffer_counts: Vec<usize>,
    batches: Vec<Batch>,
}

/// A batch: a message that contains the offsets of the buffers, and a body that contains the buffers.
struct Batch {
    message: Range<u64>,
    body: Range<u64>,
}

impl Layout {
    /// See <https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format>.
    fn of(file: &mut Ranges) -> io::Result<Self> {
        let tail = file.length.checked_sub(10).ok_or_else(|| invalid("it is too short"))?;
        let end = file.bytes(tail..file.length)?;
        if &end[4..] != MAGIC {
            return Err(invalid("it is truncated, or it is not an Arrow file"));
        }
        let footer_length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
        let start = tail.checked_sub(footer_length).ok_or_else(|| invalid("its footer is too long"))?;
        let bytes = file.bytes(start..tail)?;
        let footer = root_as_footer(&bytes).map_err(|_| invalid("its footer is damaged"))?;
        let schema =
            footer.schema().and_then(|schema| schema.fields()).ok_or_else(|| invalid("it has no schema"))?;
        if footer.dictionaries().is_some_and(|blocks| !blocks.is_empty()) {
            return Err(invalid("it has dictionaries"));
        }
        let buffer_counts = schema.iter().map(buffer_count).collect::<io::Result<_>>()?;
        let mut batches = Vec::new();
        let mut done = 0;
        for block in footer.recordBatches().iter().flatten() {
            let batch = Batch::at(block.offset(), block.metaDataLength(), block.bodyLength())?;
            if batch.message.start < done || batch.body.end > start {
                return Err(invalid("its batches overlap"));
            }
            done = batch.body.end;
            batches.push(batch);
        }
        Ok(Self { buffer_counts, batches })
    }
}

impl Batch {
    fn at(offset: i64, message_length: i32, body_length: i64) -> io::Result<Self> {
        let batch = || -> Option<Self> {
            let start = u64::try_from(offset).ok()?;
            let body = start.checked_add(u64::try_from(message_length).ok()?)?;
            let end = body.checked_add(u64::try_from(body_length).ok()?)?;
            Some(Self { message: start..body, body: body..end })
        };
        batch().ok_or_else(|| invalid("the position of a batch is invalid"))
    }

    /// The start of the first buffer of each column; for the first column, the start of the body.
    fn column_starts(&self, file: &mut Ranges, buffer_counts: &[usize]) -> io::Result<Vec<u64>> {
        let bytes = file.bytes(self.message.clone())?;
        let prefix = if bytes.starts_with(&CONTINUATION) { 8 } else { 4 };
        let message = bytes.get(prefix..).and_then(|bytes| root_as_message(bytes).ok());
        let batch = message.and_then(|message| message.header_as_record_batch());
        let buffers = batch.and_then(|batch| batch.buffers()).ok_or_else(|| invalid("a batch is damaged"))?;
        let mut starts: Vec<u64> = Vec::with_capacity(buffer_counts.len());
        let mut next = 0;
        for count in buffer_counts {
            if next >= buffers.len() {
                return Err(invalid("a batch lacks buffers"));
            }
            let offset = u64::try_from(buffers.get(next).offset()).ok();
            let start = offset.and_then(|offset| self.body.start.checked_add(offset));
            let lowest = starts.last().copied().unwrap_or(self.body.start);
            match start.filter(|start| (lowest..=self.body.end).contains(start)) {
                Some(start) if !starts.is_empty() => starts.push(start),
                Some(_) => starts.push(self.body.start),
                None => return Err(invalid("its columns overlap")),
            }
            next += count;
        }
        Ok(starts)
    }
}

/// The number of buffers of a column: one for the validity, one for the values and, for text, one for the offsets.
fn buffer_count(field: Field<'_>) -> io::Result<usize> {
    match field.type_type() {
        Type::Int | Type::FloatingPoint | Type::Bool => Ok(2),
        Type::Utf8 | Type::LargeUtf8 => Ok(3),
        _ => Err(invalid("it has nested columns")),
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read the Arrow file: {reason}"))
}

/// Reads ranges of a file; adjacent ranges share one buffer.
struct Ranges {
    file: BufReader<File>,
    at: u64,
    length: u64,
}

impl Ranges {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file: BufReader::with_capacity(BUFFER_BYTES, file), at: 0, length })
    }

    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        match i64::try_from(i128::from(offset) - i128::from(self.at)) {
            Ok(distance) => self.file.seek_relative(distance)?,
            Err(_) => drop(self.file.seek(SeekFrom::Start(offset))?),
        }
        self.at = offset;
        Ok(())
    }

    fn bytes(&mut self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.go_to(range.start)?;
        let count = range.end.min(self.length).saturating_sub(range.start);
        let mut bytes = Vec::new();
        self.at += self.file.by_ref().take(count).read_to_end(&mut bytes)? as u64;
        Ok(bytes)
    }

    fn add(&mut self, range: Range<u64>, sum: &mut Xxh3) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.go_to(range.start)?;
        while self.at < range.end {
            let bytes = self.file.fill_buf()?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let rest = usize::try_from(range.end - self.at).unwrap_or(usize::MAX);
            let count = bytes.len().min(rest);
            sum.update(&bytes[..count]);
            self.file.consume(count);
            self.at += count as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
