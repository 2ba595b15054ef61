use std::collections::BTreeSet;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, LargeStringArray, RecordBatch};
use arrow_ipc::writer::FileWriter;
use proptest::prelude::*;

use super::*;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Two batches of three columns; one column has nulls.
fn arrow_file(folder: &tempfile::TempDir) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let path = folder.path().join("table.arrow");
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..120).map(|n| (n % 7 != 0).then_some(n))));
    let flags: ArrayRef = Arc::new(BooleanArray::from_iter((0..120).map(|n| Some(n % 2 == 0))));
    let texts: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..120).map(|n| n.to_string())));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("numbers", numbers, true),
        ("flags", flags, true),
        ("texts", texts, true),
    ])?;
    let mut writer = FileWriter::try_new(File::create(&path)?, &batch.schema())?;
    writer.write(&batch)?;
    writer.write(&batch.slice(40, 50))?;
    writer.finish()?;
    Ok(path)
}

#[test]
fn a_file_has_the_checksum_of_its_bytes() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    for length in [0, 1, 255, BUFFER_BYTES, 3 * BUFFER_BYTES + 17] {
        let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        fs::write(&path, &bytes)?;
        assert_eq!(of_file(&path)?, of_bytes(&bytes));
    }
    Ok(())
}

#[test]
fn the_checksum_of_a_column_does_not_depend_on_the_others() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = arrow_file(&folder)?;
    let all = of_arrow_file(&path, |_| true)?;
    let some = of_arrow_file(&path, |column| column != 1)?;
    assert_eq!(all.columns.len(), 3);
    assert_eq!(some.structure, all.structure);
    assert_eq!(some.columns, [all.columns[0], all.columns[2]]);
    Ok(())
}

/// Change a byte in place: truncating and rewriting a file takes far longer on some file systems.
fn write_byte(file: &mut File, at: usize, byte: u8) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at as u64))?;
    file.write_all(&[byte])
}

/// A changed byte makes the file unreadable, or changes exactly one checksum: the structure's or one column's.
#[test]
fn a_changed_byte_changes_one_checksum() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = arrow_file(&folder)?;
    let whole = fs::read(&path)?;
    let before = of_arrow_file(&path, |_| true)?;
    let mut changed_columns = BTreeSet::new();
    let mut file = fs::OpenOptions::new().write(true).open(&path)?;
    for (at, &byte) in whole.iter().enumerate() {
        write_byte(&mut file, at, byte ^ 0x20)?;
        let after = of_arrow_file(&path, |_| true);
        write_byte(&mut file, at, byte)?;
        let Ok(after) = after else { continue };
        assert_ne!(after, before, "byte {at}");
        if after.structure == before.structure {
            let changed = |column: &usize| after.columns[*column] != before.columns[*column];
            let columns: Vec<usize> = (0..3).filter(changed).collect();
            assert_eq!(columns.len(), 1, "byte {at}");
            changed_columns.extend(columns);
        }
    }
    assert_eq!(changed_columns, BTreeSet::from([0, 1, 2]));
    Ok(())
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), ends_well: bool) {
        if ends_well {
            bytes.extend_from_slice(MAGIC);
        }
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("table.arrow");
        fs::write(&path, bytes)?;
        drop(of_arrow_file(&path, |_| true));
    }

    #[test]
    fn no_damage_makes_it_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let folder = tempfile::tempdir()?;
        let path = arrow_file(&folder).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut bytes = fs::read(&path)?;
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let damaged = folder.path().join("damaged.arrow");
        fs::write(&damaged, bytes)?;
        drop(of_arrow_file(&damaged, |_| true));
    }
}
