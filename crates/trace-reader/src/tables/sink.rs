//! Sinks for batches: files in a folder, or memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;

use crate::tables::rebase::rebased;
use crate::tables::schema::{schema_of, Table};

/// Takes the tables of a trace, batch by batch.
pub trait Sink {
    /// Append a batch to a table.
    ///
    /// # Errors
    ///
    /// An error if the batch cannot be stored.
    fn write(&mut self, table: Table, batch: RecordBatch) -> Result<(), ArrowError>;

    /// Complete the tables after the last batch, and add `base_ns` to every `start_ns` written so far.
    ///
    /// # Errors
    ///
    /// An error if the tables cannot be completed.
    fn finish(&mut self, base_ns: i64) -> Result<(), ArrowError>;
}

/// Writes Arrow IPC files, `<table>.arrow`, without compression, so that they can be mapped into memory.
pub struct FolderSink {
    folder: PathBuf,
    writers: Vec<(Table, FileWriter<File>)>,
}

impl FolderSink {
    /// Create a file for every table in an existing folder.
    ///
    /// # Errors
    ///
    /// An error if a file cannot be created.
    pub fn new(folder: PathBuf) -> Result<Self, ArrowError> {
        let writers = Table::ALL
            .iter()
            .map(|&table| {
                let file = File::create(folder.join(file_name(table)))?;
                Ok((table, FileWriter::try_new(file, &schema_of(table))?))
            })
            .collect::<Result<_, ArrowError>>()?;
        Ok(Self { folder, writers })
    }

    fn rebase(&self, table: Table, base_ns: i64) -> Result<(), ArrowError> {
        let path = self.folder.join(file_name(table));
        let temporary = self.folder.join(format!("{}.rebased", file_name(table)));
        let reader = FileReader::try_new(File::open(&path)?, None)?;
        let mut writer = FileWriter::try_new(File::create(&temporary)?, &schema_of(table))?;
        for batch in reader {
            writer.write(&rebased(&batch?, base_ns)?)?;
        }
        writer.finish()?;
        Ok(fs::rename(temporary, path)?)
    }
}

impl Sink for FolderSink {
    fn write(&mut self, table: Table, batch: RecordBatch) -> Result<(), ArrowError> {
        self.writers[table as usize].1.write(&batch)
    }

    fn finish(&mut self, base_ns: i64) -> Result<(), ArrowError> {
        for (_, writer) in &mut self.writers {
            writer.finish()?;
        }
        if base_ns != 0 {
            for table in timed_tables() {
                self.rebase(table, base_ns)?;
            }
        }
        Ok(())
    }
}

/// Keeps the batches in memory.
#[derive(Debug, Default)]
pub struct MemorySink {
    batches: BTreeMap<Table, Vec<RecordBatch>>,
}

impl MemorySink {
    /// Remove and return the batches of a table, in order.
    pub fn take(&mut self, table: Table) -> Vec<RecordBatch> {
        self.batches.remove(&table).unwrap_or_default()
    }
}

impl Sink for MemorySink {
    fn write(&mut self, table: Table, batch: RecordBatch) -> Result<(), ArrowError> {
        self.batches.entry(table).or_default().push(batch);
        Ok(())
    }

    fn finish(&mut self, base_ns: i64) -> Result<(), ArrowError> {
        if base_ns != 0 {
            for table in timed_tables() {
                for batch in self.batches.entry(table).or_default() {
                    *batch = rebased(batch, base_ns)?;
                }
            }
        }
        Ok(())
    }
}

fn file_name(table: Table) -> String {
    format!("{}.arrow", table.name())
}

fn timed_tables() -> impl Iterator<Item = Table> {
    [Table::Events, Table::Flows, Table::Counters].into_iter()
}
