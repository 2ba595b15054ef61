//! Collects the columns of a chunk, and turns them into record batches.

use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use crate::tables::schema::{columns_of, schema_of, ColumnType, Table};

/// The values of a column, of which some may be missing; missing values take no memory until a later row gets a value.
#[derive(Debug, Default)]
pub(crate) struct Sparse<T> {
    values: Vec<T>,
    /// Whether each row has a value; empty as long as all rows have one.
    valid: Vec<bool>,
}

impl<T: Copy + Default> Sparse<T> {
    /// Put `value` into `row`, which is the last row or a later row; if a row gets several values, the last value wins.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: T) {
        if self.values.len() != row {
            self.fill(row);
        }
        self.values.push(value);
        if !self.valid.is_empty() {
            self.valid.push(true);
        }
    }

    /// Extend the column to `rows` rows with nulls, or cut it to that length.
    fn fill(&mut self, rows: usize) {
        let leaves_gap = rows > self.values.len();
        if leaves_gap && self.valid.is_empty() {
            self.valid.resize(self.values.len(), true);
        }
        if leaves_gap || !self.valid.is_empty() {
            self.valid.resize(rows, false);
        }
        self.values.resize(rows, T::default());
    }

    fn nulls(&mut self) -> Option<NullBuffer> {
        let valid = std::mem::take(&mut self.valid);
        valid.contains(&false).then(|| NullBuffer::new(BooleanBuffer::from(valid)))
    }
}

/// Maps the chunk's own numbers of events, strings and tracks to the numbers that the whole file uses.
#[derive(Debug)]
pub(crate) struct Renumbering {
    pub(crate) first_event: u32,
    pub(crate) strings: Vec<u32>,
    pub(crate) tracks: Vec<u32>,
}

/// One column.
#[derive(Debug)]
pub(crate) enum Values {
    Int64(Sparse<i64>),
    Int32(Sparse<i32>),
    UInt64(Sparse<u64>),
    UInt8(Sparse<u8>),
    Float64(Sparse<f64>),
    Bool(Sparse<bool>),
    /// Indices of strings in the chunk.
    String(Sparse<u32>),
    /// Indices of tracks in the chunk.
    Track(Sparse<u32>),
    /// Indices of events in the chunk.
    Event(Sparse<u32>),
    InPlace(Vec<String>),
}

impl Values {
    fn new(name: &str, kind: ColumnType) -> Self {
        match kind {
            ColumnType::Int64 => Self::Int64(Sparse::default()),
            ColumnType::Int32 => Self::Int32(Sparse::default()),
            ColumnType::UInt64 => Self::UInt64(Sparse::default()),
            ColumnType::UInt8 => Self::UInt8(Sparse::default()),
            ColumnType::Float64 => Self::Float64(Sparse::default()),
            ColumnType::Bool => Self::Bool(Sparse::default()),
            ColumnType::Text | ColumnType::Json => Self::String(Sparse::default()),
            ColumnType::UInt32 if name == "track_id" => Self::Track(Sparse::default()),
            ColumnType::UInt32 => Self::Event(Sparse::default()),
            ColumnType::InPlace => Self::InPlace(Vec::new()),
        }
    }

    fn fill(&mut self, rows: usize) {
        match self {
            Self::Int64(values) => values.fill(rows),
            Self::Int32(values) => values.fill(rows),
            Self::UInt64(values) => values.fill(rows),
            Self::UInt8(values) => values.fill(rows),
            Self::Float64(values) => values.fill(rows),
            Self::Bool(values) => values.fill(rows),
            Self::String(values) | Self::Track(values) | Self::Event(values) => values.fill(rows),
            Self::InPlace(values) => values.resize(rows, String::new()),
        }
    }

    /// The number of rows, including the open row if it has a value.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int64(values) => values.values.len(),
            Self::Int32(values) => values.values.len(),
            Self::UInt64(values) => values.values.len(),
            Self::UInt8(values) => values.values.len(),
            Self::Float64(values) => values.values.len(),
            Self::Bool(values) => values.values.len(),
            Self::String(values) | Self::Track(values) | Self::Event(values) => values.values.len(),
            Self::InPlace(values) => values.len(),
        }
    }

    fn finish(self, numbers: &Renumbering) -> ArrayRef {
        match self {
            Self::Int64(values) => primitive::<Int64Type>(values),
            Self::Int32(values) => primitive::<Int32Type>(values),
            Self::UInt64(values) => primitive::<UInt64Type>(values),
            Self::UInt8(values) => primitive::<UInt8Type>(values),
            Self::Float64(values) => primitive::<Float64Type>(values),
            Self::Bool(mut values) => {
                let nulls = values.nulls();
                Arc::new(BooleanArray::new(BooleanBuffer::from(values.values), nulls))
            }
            Self::String(values) => renumbered(values, |id| numbers.strings[id as usize]),
            Self::Track(values) => renumbered(values, |id| numbers.tracks[id as usize]),
            Self::Event(values) => renumbered(values, |position| numbers.first_event + position),
            Self::InPlace(values) => {
                let mut builder = LargeStringBuilder::new();
                values.iter().for_each(|value| builder.append_value(value));
                Arc::new(builder.finish())
            }
        }
    }
}

fn primitive<P: ArrowPrimitiveType>(mut values: Sparse<P::Native>) -> ArrayRef
where
    P::Native: Default,
{
    let nulls = values.nulls();
    Arc::new(PrimitiveArray::<P>::new(ScalarBuffer::from(values.values), nulls))
}

fn renumbered(mut values: Sparse<u32>, number: impl Fn(u32) -> u32) -> ArrayRef {
    let is_valid = |row| values.valid.get(row).is_none_or(|&valid| valid);
    for (row, value) in values.values.iter_mut().enumerate() {
        *value = if is_valid(row) { number(*value) } else { 0 };
    }
    primitive::<UInt32Type>(values)
}

/// One table of a chunk. At most one row is open for writing; it is discarded unless it is committed.
#[derive(Debug)]
pub(crate) struct Rows {
    table: Table,
    columns: Vec<Values>,
    committed: usize,
}

impl Rows {
    pub(crate) fn new(table: Table) -> Self {
        let columns = columns_of(table).iter().map(|&(name, kind)| Values::new(name, kind)).collect();
        Self { table, columns, committed: 0 }
    }

    /// Return a column, and the index of the row that is open for writing.
    #[inline]
    pub(crate) fn column(&mut self, column: u8) -> (&mut Values, usize) {
        (&mut self.columns[usize::from(column)], self.committed)
    }

    /// Keep the open row, which describes the event at `position`.
    #[inline]
    pub(crate) fn commit(&mut self, position: u32) {
        if let Values::Event(values) = &mut self.columns[0] {
            values.set(self.committed, position);
        }
        self.committed += 1;
    }

    /// Discard the open row.
    pub(crate) fn roll_back(&mut self) {
        let committed = self.committed;
        self.columns.iter_mut().for_each(|column| {
            if column.len() > committed {
                column.fill(committed);
            }
        });
    }

    /// Return the rows as a record batch, or `None` if there are no rows. The batch identifies events, strings
    /// and tracks by their numbers in the file.
    pub(crate) fn finish(mut self, numbers: &Renumbering) -> Result<Option<RecordBatch>, ArrowError> {
        if self.committed == 0 {
            return Ok(None);
        }
        let table = self.table;
        let committed = self.committed;
        self.columns.iter_mut().for_each(|column| column.fill(committed));
        let arrays = self.columns.into_iter().map(|column| column.finish(numbers)).collect();
        RecordBatch::try_new(schema_of(table), arrays).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    fn finished(mut column: Sparse<i64>, rows: usize) -> Vec<Option<i64>> {
        column.fill(rows);
        primitive::<Int64Type>(column).as_primitive::<Int64Type>().iter().collect()
    }

    /// Rows without a value are null; if a row gets two values, the second wins.
    #[test]
    fn gaps() {
        let mut column = Sparse::default();
        for (row, value) in [(0, 1), (1, 2), (1, 3), (4, 5), (6, 7)] {
            column.set(row, value);
        }
        assert_eq!(finished(column, 8), [Some(1), Some(3), None, None, Some(5), None, Some(7), None]);
        let mut late = Sparse::default();
        late.set(2, 1);
        assert_eq!(finished(late, 3), [None, None, Some(1)]);
        assert_eq!(finished(Sparse::default(), 2), [None, None]);
    }

    /// A discarded row leaves no null behind, and does not change the nulls of earlier rows.
    #[test]
    fn discarded_rows() {
        let mut column = Sparse::default();
        column.set(0, 1);
        column.set(1, 2);
        column.fill(1);
        column.set(1, 3);
        assert!(column.valid.is_empty());
        column.set(3, 4);
        column.fill(3);
        column.set(3, 5);
        assert_eq!(finished(column, 4), [Some(1), Some(3), None, Some(5)]);
    }
}
