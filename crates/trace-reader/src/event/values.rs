//! Puts each arg of an event into its column, or into the JSON of args without a column.

use super::args::{Target, GRID_TEXT};
use super::coerce;
use super::fields::{Fields, Meaning};
use super::object::Unread;
use super::reader::Reader;
use crate::health::Fault;
use crate::json::{decoded, expect_json, without_unescaping, Blemishes, Broken, Quotes, Raw, Shape, Unfit};
use crate::tables::columns::Values;
use crate::tables::schema::Table;

impl<'a> Reader<'a> {
    pub(super) fn args(&mut self, fields: &mut Fields<'a>) -> Result<(), Unread> {
        if fields.has_read_args {
            return Err(Unread::ArgsLast);
        }
        if fields.determine_args() && fields.args_later.is_none() {
            fields.has_read_args = true;
            return Ok(self.read_args(fields)?);
        }
        fields.args_later = Some(self.cursor.at);
        Ok(self.pass_args()?)
    }

    pub(super) fn pass_args(&mut self) -> Result<(), Broken> {
        if self.cursor.quotes == Quotes::Strict {
            self.cursor.value().map(|_| ())
        } else {
            let mut is_first = true;
            while self.key(is_first)?.is_some() {
                self.cursor.value()?;
                is_first = false;
            }
            Ok(())
        }
    }

    pub(super) fn read_args(&mut self, fields: &Fields<'a>) -> Result<(), Broken> {
        let rows = fields.rows_of_args();
        let samples = fields.holds_samples();
        let is_row = fields.is_row_of_events();
        self.layout.enter(rows as usize);
        let mut is_first = true;
        loop {
            self.member(is_first, |key| Meaning::Arg(rows.args().target(key)))?;
            let Meaning::Arg(target) = self.layout.member().meaning else { return Ok(()) };
            is_first = false;
            let value = self.value()?;
            if value.is_null() {
                continue;
            }
            match target {
                _ if samples && self.sample(value) => {}
                Some(target) if is_row || !target.is_of_events() => {
                    if !self.put(target, value) {
                        self.note(Fault::UnexpectedValue, self.start);
                        self.keep(self.layout.member().key, value);
                    }
                }
                _ => self.keep(self.layout.member().key, value),
            }
        }
    }

    pub(super) fn sample(&mut self, value: Raw<'a>) -> bool {
        let number = coerce::float(value).filter(|_| value.shape == Shape::Number);
        let Some(number) = number else { return false };
        let key = self.intern(text(self.layout.member().key));
        self.samples.push((key, number));
        true
    }

    /// Put a value into its column; returns `false` if the value does not fit.
    #[inline]
    pub(super) fn put(&mut self, target: Target, value: Raw<'a>) -> bool {
        match target {
            Target::Column { table, column } => self.put_column(table, column, value),
            Target::Stream { table, column } => self.put_integer(table, column, coerce::stream(value)),
            Target::Time { table, column } => self.put_integer(table, column, coerce::time_on_xpu(value)),
            Target::Triple { table, column } => match coerce::triple(value) {
                Some(numbers) => {
                    (column..).zip(numbers).all(|(at, number)| self.put_integer(table, at, Some(number)))
                }
                None if value.is_text() => self.put(*GRID_TEXT, value),
                None => false,
            },
        }
    }

    #[inline]
    pub(super) fn put_integer(&mut self, table: Table, column: u8, number: Option<i64>) -> bool {
        let Some(number) = number else { return false };
        self.touch(table);
        let (values, row) = self.tables[table as usize].column(column);
        if let Values::Int64(values) = values {
            values.set(row, number);
        }
        true
    }

    pub(super) fn put_column(&mut self, table: Table, column: u8, value: Raw<'a>) -> bool {
        let text = match self.tables[table as usize].column(column).0 {
            Values::String(_) => Some(self.intern(value)),
            _ => None,
        };
        let (values, row) = self.tables[table as usize].column(column);
        let fits = match values {
            Values::Int64(values) => coerce::integer(value).map(|number| values.set(row, number)),
            Values::Int32(values) => coerce::integer(value)
                .and_then(|number| number.try_into().ok())
                .map(|number| values.set(row, number)),
            Values::UInt64(values) => coerce::unsigned(value).map(|number| values.set(row, number)),
            Values::Float64(values) => coerce::float(value).map(|number| values.set(row, number)),
            Values::Bool(values) => coerce::boolean(value).map(|number| values.set(row, number)),
            Values::String(values) => text.map(|id| values.set(row, id)),
            Values::UInt8(_) | Values::Track(_) | Values::Event(_) | Values::InPlace(_) => None,
        };
        if fits.is_some() {
            self.touch(table);
        }
        fits.is_some()
    }

    /// Keep an arg that has no column.
    #[cold]
    pub(super) fn keep(&mut self, key: &'a [u8], value: Raw<'a>) {
        self.extra.push(if self.extra.is_empty() { '{' } else { ',' });
        let (json, blemishes) = json_string(key);
        self.extra.push_str(&json);
        self.note_blemishes(blemishes, key);
        self.extra.push(':');
        let (json, blemishes) = json_value(value);
        self.extra.push_str(&json);
        self.note_blemishes(blemishes, value.bytes);
    }
}

/// A value whose text is not from the file, such as an empty name.
pub(super) fn text(bytes: &[u8]) -> Raw<'_> {
    Raw { bytes, shape: Shape::Text }
}

fn json_string(raw: &[u8]) -> (String, Blemishes) {
    let (text, blemishes) = decoded(raw);
    (serde_json::Value::from(text.as_ref()).to_string(), blemishes)
}

/// The value as JSON; the text of an invalid value becomes a JSON string.
fn json_value(value: Raw<'_>) -> (String, Blemishes) {
    if value.is_text() {
        return json_string(value.bytes);
    }
    let text = std::str::from_utf8(value.bytes);
    let unfit = expect_json(value.bytes).err();
    if let (Ok(text), None) = (text, unfit) {
        return (text.to_owned(), Blemishes::default());
    }
    let (text, blemishes) = without_unescaping(value.bytes);
    let blemishes = Blemishes {
        control_character: false,
        // A bare word that is not JSON, such as `NaN`, was already reported when it was read.
        broken_value: unfit == Some(Unfit::Broken) && value.is_composite(),
        deep_value: unfit == Some(Unfit::Deep),
        ..blemishes
    };
    (serde_json::Value::from(text.as_ref()).to_string(), blemishes)
}
