//! The JSON object of one event, member by member.

use super::fields::{legacy_kind, meant, phase, Field, Fields, Meaning};
use super::layout::Member;
use super::reader::Reader;
use crate::event::kind::Kind;
use crate::health::Fault;
use crate::json::scan;
use crate::json::{Broken, Quotes, Raw};

/// Why an event cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Broken(Broken),
    /// A key that determines how to read the args was repeated after them, so the event must be read again, with the
    /// args last.
    ArgsLast,
}

impl From<Broken> for Unread {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn event(&mut self, fields: &mut Fields<'a>) -> Result<(), Broken> {
        let at = self.cursor.at;
        match self.fields(fields) {
            Ok(()) => {}
            Err(Unread::Broken(broken)) => return Err(broken),
            Err(Unread::ArgsLast) => {
                self.forget_event();
                self.cursor.at = at;
                *fields = self.fields_before_args()?;
            }
        }
        if let Some(args) = fields.args_later {
            let end = std::mem::replace(&mut self.cursor.at, args);
            self.read_args(fields)?;
            self.cursor.at = end;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn fields(&mut self, fields: &mut Fields<'a>) -> Result<(), Unread> {
        let mut is_first = true;
        loop {
            self.member(is_first, Meaning::of_field)?;
            let Meaning::Field(field) = self.layout.member().meaning else { return Ok(()) };
            self.field(field, fields)?;
            is_first = false;
        }
    }

    /// Read the fields of an event with repeated keys: the last value of a key wins, and the args are read last.
    #[cold]
    pub(super) fn fields_before_args(&mut self) -> Result<Fields<'a>, Broken> {
        let mut fields = Fields::default();
        let mut is_first = true;
        self.layout.lose();
        loop {
            self.member(is_first, Meaning::of_field)?;
            let Meaning::Field(field) = self.layout.member().meaning else { return Ok(fields) };
            is_first = false;
            if field == Field::Args && self.cursor.peek() == b'{' {
                fields.args_later = Some(self.cursor.at);
                self.pass_args()?;
                continue;
            }
            self.field(field, &mut fields).map_err(|unread| match unread {
                Unread::Broken(broken) => broken,
                Unread::ArgsLast => Broken::Syntax, // cannot happen: no args were read yet
            })?;
        }
    }

    /// Read the next member of the object; leaves the cursor at its value, or after the object.
    #[inline]
    pub(super) fn member(
        &mut self,
        is_first: bool,
        meaning: impl FnOnce(&[u8]) -> Meaning,
    ) -> Result<(), Broken> {
        let ahead = self.cursor.bytes.get(self.cursor.at..).unwrap_or_default();
        let Some(length) = self.layout.step(ahead) else {
            return self.unexpected_member(is_first, meaning);
        };
        self.cursor.at += length;
        let member = self.layout.member();
        if member.meaning != Meaning::End && member.value.is_none() {
            self.cursor.skip_space();
        }
        Ok(())
    }

    /// Read a member that the layout did not predict, and remember its layout.
    #[cold]
    pub(super) fn unexpected_member(
        &mut self,
        is_first: bool,
        meaning: impl FnOnce(&[u8]) -> Meaning,
    ) -> Result<(), Broken> {
        let (from, note_count) = (self.cursor.at, self.notes.len());
        let key = self.key(is_first)?;
        let meaning = key.map_or(Meaning::End, meaning);
        let is_told =
            meaning.is_telling() && self.cursor.quotes == Quotes::Strict && self.cursor.peek() == b'"';
        let value = if is_told { Some(self.cursor.value()?) } else { None };
        let member = Member { key: key.unwrap_or_default(), meaning, value };
        if self.notes.len() != note_count {
            self.layout.lose();
        }
        self.layout.learn(&self.cursor.bytes[from..self.cursor.at], member);
        Ok(())
    }

    /// Read the next key of the object; leaves the cursor at its value. `None` at the end of the object.
    #[inline]
    pub(super) fn key(&mut self, is_first: bool) -> Result<Option<&'a [u8]>, Broken> {
        let mut after_comma = false;
        if is_first {
            self.cursor.expect(b'{')?;
        } else {
            self.cursor.skip_space();
            after_comma = self.cursor.peek() == b',';
            if after_comma {
                self.cursor.at += 1;
            } else if self.cursor.peek() != b'}' {
                return Err(self.cursor.unexpected());
            }
        }
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'"' => return self.cursor.key().map(Some),
                b'}' => {
                    if after_comma {
                        self.note(Fault::StrayComma, self.cursor.at);
                    }
                    self.cursor.at += 1;
                    return Ok(None);
                }
                b',' => {
                    self.note(Fault::StrayComma, self.cursor.at);
                    self.cursor.at += 1;
                }
                _ => return Err(self.cursor.unexpected()),
            }
        }
    }

    #[inline]
    pub(super) fn field(&mut self, field: Field, fields: &mut Fields<'a>) -> Result<(), Unread> {
        if field == Field::Args && self.cursor.peek() == b'{' {
            return self.args(fields);
        }
        if fields.has_read_args && matches!(field, Field::Phase | Field::Category | Field::Process) {
            return Err(Unread::ArgsLast);
        }
        let value = match self.layout.member().value {
            Some(value) => value,
            None => self.value()?,
        };
        match field {
            Field::Phase => fields.phase = phase(value),
            Field::Category => self.category(value, fields),
            Field::Name => fields.name = Some(value),
            Field::Process => {
                fields.pid = Some(value);
                if fields.category.is_none() {
                    fields.kind = legacy_kind(fields.pid);
                }
            }
            Field::Thread => fields.tid = Some(value),
            Field::Time => fields.time = Some(value),
            Field::Duration => fields.duration = Some(value),
            Field::Id => fields.id = Some(value),
            Field::Passed if value.is_text() => self.check_text(value),
            Field::Passed | Field::Args | Field::Unknown => self.keep(meant(self.layout.member().key), value),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn category(&mut self, value: Raw<'a>, fields: &mut Fields<'a>) {
        let Some(raw) = value.scalar().filter(|_| !value.is_null()) else {
            if value.is_composite() {
                self.keep(b"cat", value);
            }
            fields.category = None;
            fields.kind = legacy_kind(fields.pid);
            return;
        };
        if self.last_category.0 != raw {
            self.last_category = (raw, Kind::of_category(raw));
        }
        fields.kind = self.last_category.1;
        fields.category = Some(value);
    }

    #[inline]
    pub(super) fn value(&mut self) -> Result<Raw<'a>, Broken> {
        let at = self.cursor.at;
        let value = self.cursor.value()?;
        if value.is_text() {
            if self.cursor.guessed && scan::holds_event(value.bytes) {
                return Err(Broken::Syntax);
            }
        } else if value.is_bare_word() {
            self.note(Fault::BareLiteral, at);
        }
        Ok(value)
    }
}
