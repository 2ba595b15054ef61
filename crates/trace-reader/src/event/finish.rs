//! Turns the fields of an event into rows, phase by phase.

use super::fields::Fields;
use super::reader::Reader;
use super::values::text;
use super::Edge;
use crate::event::coerce;
use crate::event::kind::Kind;
use crate::event::time::{is_in_range, is_possible_duration};
use crate::health::Fault;
use crate::json::Raw;
use crate::tables::columns::{Rows, Values};
use crate::tables::schema::Table;

impl<'a> Reader<'a> {
    /// Turn the fields of an event into rows; if a fault is returned, the event is dropped.
    pub(super) fn finish(&mut self, fields: &Fields<'a>) -> Result<(), Fault> {
        match fields.phase {
            b'X' => self.finish_complete(fields),
            b's' | b't' | b'f' => self.finish_flow(fields),
            b'i' | b'I' | b'R' | b'n' => self.finish_instant(fields),
            b'M' => self.finish_metadata(fields),
            b'C' => self.finish_counter(fields),
            b'B' | b'E' => self.finish_edge(fields, fields.phase == b'B', false),
            b'b' | b'e' => self.finish_edge(fields, fields.phase == b'b', true),
            0 if fields.duration.is_some() => {
                self.note(Fault::MissingPhase, self.start);
                self.finish_complete(fields)
            }
            0 => Err(Fault::BrokenEvent),
            _ => Err(Fault::UnknownPhase),
        }
    }

    fn finish_complete(&mut self, fields: &Fields<'a>) -> Result<(), Fault> {
        let start_ns = self.time(fields)?;
        let duration_ns = self.duration(fields)?;
        start_ns.checked_add(duration_ns).filter(|&end_ns| is_in_range(end_ns)).ok_or(Fault::TimeOverflow)?;
        self.event_row(fields, fields.kind, start_ns, duration_ns);
        Ok(())
    }

    fn finish_instant(&mut self, fields: &Fields<'a>) -> Result<(), Fault> {
        let start_ns = self.time(fields)?;
        let is_memory = fields.name.and_then(Raw::scalar) == Some(b"[memory]");
        self.event_row(fields, if is_memory { Kind::Memory } else { Kind::Instant }, start_ns, 0);
        Ok(())
    }

    fn time(&self, fields: &Fields<'a>) -> Result<i64, Fault> {
        let raw = fields.time.ok_or(Fault::MissingTime)?;
        match coerce::nanoseconds(raw) {
            Some(time) => time
                .checked_add(self.chunk.base_ns)
                .filter(|&start_ns| is_in_range(start_ns))
                .ok_or(Fault::TimeOverflow),
            None if coerce::float(raw).is_some_and(f64::is_finite) => Err(Fault::TimeOverflow),
            None => Err(Fault::MissingTime),
        }
    }

    fn duration(&mut self, fields: &Fields<'a>) -> Result<i64, Fault> {
        let Some(raw) = fields.duration.filter(|raw| !raw.is_null()) else {
            self.note(Fault::MissingDuration, self.start);
            return Ok(0);
        };
        match coerce::nanoseconds(raw) {
            Some(duration) if !is_possible_duration(duration) => Err(Fault::TimeOverflow),
            Some(duration) if duration >= 0 => Ok(duration),
            Some(_) => {
                self.note(Fault::NegativeDuration, self.start);
                Ok(0)
            }
            None if coerce::float(raw).is_some_and(f64::is_finite) => Err(Fault::TimeOverflow),
            None => {
                self.note(Fault::MissingDuration, self.start);
                Ok(0)
            }
        }
    }

    fn name(&mut self, fields: &Fields<'a>) -> u32 {
        match fields.name.filter(|name| !name.is_null()) {
            Some(name) => self.intern(name),
            None => {
                self.note(Fault::MissingName, self.start);
                self.intern(text(b""))
            }
        }
    }

    fn track(&mut self, fields: &Fields<'a>) -> u32 {
        let (track, blemishes) = self.tracks.intern(fields.pid, fields.tid, &mut self.strings);
        if blemishes.any() {
            self.note_blemishes(blemishes, b"");
        }
        track
    }

    fn event_row(&mut self, fields: &Fields<'a>, kind: Kind, start_ns: i64, duration_ns: i64) {
        let category = fields.category.map(|category| self.intern(category));
        let name = self.name(fields);
        let track = self.track(fields);
        let lanes = kind.is_on_device().then(|| self.tracks.track(track));
        let rows = &mut self.tables[Table::Events as usize];
        set(rows, 1, start_ns);
        set(rows, 2, duration_ns);
        set(rows, 3, kind as u8);
        if let Some(category) = category {
            set(rows, 4, category);
        }
        set(rows, 5, name);
        set(rows, 6, track);
        if let Some((process, thread)) = lanes {
            set_if_missing(rows, 7, process.number().and_then(|device| i32::try_from(device).ok()));
            set_if_missing(rows, 8, thread.number());
        }
        self.touch(Table::Events);
        self.commit_samples(start_ns, Some(name), track);
        self.commit();
    }

    fn finish_flow(&mut self, fields: &Fields<'a>) -> Result<(), Fault> {
        let start_ns = self.time(fields)?;
        let category = fields.category.map(|category| self.intern(category));
        let name = fields.name.map(|name| self.intern(name));
        let track = self.track(fields);
        let id = fields.id.and_then(coerce::stream);
        if let (None, Some(unfit)) = (id, fields.id.filter(|id| !id.is_null())) {
            self.note(Fault::UnexpectedValue, self.start);
            self.keep(b"id", unfit);
        }
        let rows = &mut self.tables[Table::Flows as usize];
        set(rows, 1, start_ns);
        if let Some(id) = id {
            set(rows, 2, id);
        }
        set(rows, 3, fields.phase == b's');
        if let Some(category) = category {
            set(rows, 4, category);
        }
        if let Some(name) = name {
            set(rows, 5, name);
        }
        set(rows, 6, track);
        self.touch(Table::Flows);
        self.commit();
        Ok(())
    }

    fn finish_metadata(&mut self, fields: &Fields<'a>) -> Result<(), Fault> {
        let name = fields.name.map(|name| self.intern(name));
        let track = self.track(fields);
        let rows = &mut self.tables[Table::Metadata as usize];
        set(rows, 1, track);
        if let Some(name) = name {
            set(rows, 2, name);
        }
        self.touch(Table::Metadata);
        self.commit();
        Ok(())
    }

    fn finish_counter(&mut self, fields: &Fields<'a>) -> Result<(), Fault> {
        let start_ns = self.time(fields)?;
        let name = fields.name.map(|name| self.intern(name));
        let track = self.track(fields);
        self.commit_samples(start_ns, name, track);
        self.commit();
        Ok(())
    }

    fn commit_samples(&mut self, start_ns: i64, name: Option<u32>, track: u32) {
        let rows = &mut self.tables[Table::Counters as usize];
        for (key, value) in self.samples.drain(..) {
            set(rows, 1, start_ns);
            if let Some(name) = name {
                set(rows, 2, name);
            }
            set(rows, 3, track);
            set(rows, 4, key);
            set(rows, 5, value);
            rows.commit(self.position);
        }
    }

    fn finish_edge(&mut self, fields: &Fields<'a>, is_begin: bool, by_id: bool) -> Result<(), Fault> {
        let at_ns = self.time(fields)?;
        let name = if is_begin || by_id { self.name(fields) } else { self.intern(text(b"")) };
        let edge = Edge {
            is_begin,
            id: fields.id.filter(|_| by_id).map(|id| self.intern(id)),
            position: self.position,
            offset: self.chunk.offset + self.start as u64,
            at_ns,
            kind: fields.kind,
            category: fields.category.map(|category| self.intern(category)),
            name,
            track: self.track(fields),
        };
        // `Pairs` writes the row in `events` once it has paired the begin and end records.
        self.edges.push(edge);
        self.commit();
        Ok(())
    }
}

/// A type whose values are stored in a column without conversion.
trait Store: Copy {
    fn store(self, values: &mut Values, row: usize);
}

macro_rules! store {
    ($($native:ty => $($variant:ident)|+,)*) => {
        $(impl Store for $native {
            #[inline]
            fn store(self, values: &mut Values, row: usize) {
                if let $(Values::$variant(values))|+ = values {
                    values.set(row, self);
                }
            }
        })*
    };
}

store! {
    i64 => Int64,
    i32 => Int32,
    u8 => UInt8,
    f64 => Float64,
    bool => Bool,
    u32 => String | Track,
}

#[inline]
fn set<T: Store>(rows: &mut Rows, column: u8, value: T) {
    let (values, row) = rows.column(column);
    value.store(values, row);
}

#[inline]
fn set_if_missing<T: Store>(rows: &mut Rows, column: u8, value: Option<T>) {
    let (values, row) = rows.column(column);
    if let (Some(value), true) = (value, values.len() <= row) {
        value.store(values, row);
    }
}
