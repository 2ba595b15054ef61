//! The list of events: separators, damage between events, and repairs of broken events.

use super::fields::Fields;
use super::reader::Reader;
use super::{Begin, End, Outcome};
use crate::health::{Fault, Lost};
use crate::json::scan;
use crate::json::{Broken, Cursor, Quotes};

/// What may come next in the list of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The list has just begun; an event or the end of the list may follow.
    EventOrEnd,
    /// A comma was just read; only an event may follow.
    Event,
    /// An event was just read; a comma or the end of the list may follow.
    CommaOrEnd,
    /// The preceding text is unknown; anything may follow.
    Anything,
}

impl Begin {
    fn next(self) -> Next {
        match self {
            Self::OfList => Next::EventOrEnd,
            Self::OfEvent => Next::Event,
            Self::Anywhere => Next::Anything,
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn all_events(&mut self) -> Outcome {
        let mut next = self.chunk.begin.next();
        loop {
            self.cursor.skip_space();
            let at = self.cursor.at;
            match self.cursor.peek() {
                b'{' => {
                    if next == Next::CommaOrEnd {
                        self.remark_now(Fault::MissingComma, at);
                    }
                    match self.event_or_repair() {
                        Ok(follows) => next = follows,
                        Err(outcome) => return outcome,
                    }
                }
                b',' => {
                    if matches!(next, Next::Event | Next::EventOrEnd) {
                        self.remark_now(Fault::StrayComma, at);
                    }
                    next = Next::Event;
                    self.cursor.at += 1;
                }
                b']' => {
                    if next == Next::Event {
                        self.remark_now(Fault::StrayComma, at);
                    }
                    self.cursor.at += 1;
                    if !self.goes_on_with_event() {
                        return Outcome::ArrayEnd(at + 1);
                    }
                    self.remark_now(Fault::StrayBracket, at);
                    next = Next::Anything;
                }
                _ if self.cursor.is_at_end() => return Outcome::AllRead,
                0 => self.zeros(),
                _ => match self.other_element(next) {
                    Ok(follows) => next = follows,
                    Err(outcome) => return outcome,
                },
            }
        }
    }

    /// Whether another event follows the bracket just read; if so, the bracket does not close the list.
    fn goes_on_with_event(&self) -> bool {
        let mut ahead = Cursor::new(self.cursor.bytes, self.cursor.at);
        ahead.skip_space();
        if ahead.peek() == b',' {
            ahead.at += 1;
            ahead.skip_space();
        }
        scan::is_event(ahead.bytes, ahead.at)
    }

    /// Skip zero bytes.
    fn zeros(&mut self) {
        let (bytes, at) = (self.cursor.bytes, self.cursor.at);
        let end = bytes[at..].iter().position(|&byte| byte != 0).map_or(bytes.len(), |length| at + length);
        self.cursor.at = end;
        self.remark_loss(Fault::ZeroBytes, at, Lost::bytes((end - at) as u64));
        self.commit_notes();
    }

    /// Skip a list element that is not an object, or text that is not an element.
    fn other_element(&mut self, next: Next) -> Result<Next, Outcome> {
        let at = self.cursor.at;
        self.start = at;
        let value = if self.patience > 0 { self.cursor.value() } else { Err(Broken::Syntax) };
        match value {
            Err(Broken::EndOfInput) if self.chunk.end == End::Open => return Err(Outcome::Cut(at)),
            Err(broken) => self.lose_patience(broken),
            Ok(_) => {}
        }
        let end = self.cursor.at;
        self.cursor.skip_space();
        let is_element = next != Next::CommaOrEnd && matches!(self.cursor.peek(), b',' | b']');
        let text = self.cursor.bytes;
        if value.is_ok() && is_element {
            self.remark_loss(Fault::NotAnEvent, at, Lost::event(&text[at..end]));
            self.commit_notes();
            self.position += 1;
            return Ok(Next::CommaOrEnd);
        }
        self.cursor.at = at;
        self.pass_over(Fault::Garbage, at, scan::next_event(text, at));
        Ok(Next::Anything)
    }

    /// Skip the text from `from` to `to`, or to the end of the chunk.
    fn pass_over(&mut self, fault: Fault, from: usize, to: Option<usize>) {
        self.cursor.at = to.unwrap_or(self.cursor.bytes.len());
        self.remark_loss(fault, from, Lost::text(&self.cursor.bytes[from..self.cursor.at]));
        self.commit_notes();
    }

    /// Read the event at the cursor and repair it if necessary. If the event continues in the next chunk, the error is
    /// [`Outcome::Cut`].
    fn event_or_repair(&mut self) -> Result<Next, Outcome> {
        self.start = self.cursor.at;
        match self.event_with(Quotes::Strict) {
            Ok(()) => return Ok(Next::CommaOrEnd),
            Err(Broken::EndOfInput) if self.chunk.end == End::Open => return Err(Outcome::Cut(self.start)),
            Err(broken) => self.lose_patience(broken),
        }
        for quotes in [Quotes::Guessed, Quotes::GuessedEvenEscaped] {
            match self.event_with(quotes) {
                Ok(()) => {
                    if self.cursor.guessed {
                        self.remark_now(Fault::UnescapedQuote, self.start);
                    }
                    return Ok(Next::CommaOrEnd);
                }
                Err(broken) => self.lose_patience(broken),
            }
        }
        self.leave_out_event();
        Ok(Next::Anything)
    }

    fn leave_out_event(&mut self) {
        let text = self.cursor.bytes;
        let next = scan::next_event(text, self.start + 1).filter(|_| self.patience > 0);
        let fault = match (next, self.chunk.end) {
            (None, End::OfFile) => Fault::TruncatedJson,
            (None, End::OfPatience) => Fault::OversizedEvent,
            _ => Fault::BrokenEvent,
        };
        self.cursor.at = next.unwrap_or(text.len());
        self.remark_loss(fault, self.start, Lost::event(&text[self.start..self.cursor.at]));
        self.commit_notes();
        self.position += 1;
    }

    fn lose_patience(&mut self, broken: Broken) {
        let end = if broken == Broken::EndOfInput { self.cursor.bytes.len() } else { self.cursor.at };
        self.patience = self.patience.saturating_sub(end.saturating_sub(self.start));
    }

    /// Read the event at `start`; keeps all its rows, or none on an error.
    fn event_with(&mut self, quotes: Quotes) -> Result<(), Broken> {
        self.cursor.at = self.start;
        self.cursor.quotes = quotes;
        self.cursor.guessed = false;
        self.layout.begin();
        if quotes != Quotes::Strict {
            self.layout.lose();
        }
        let mut fields = Fields::default();
        let read = self.event(&mut fields);
        self.cursor.quotes = Quotes::Strict;
        match read {
            Ok(()) => {
                if let Err(fault) = self.finish(&fields) {
                    if quotes != Quotes::Strict {
                        // The guess about which quote closes a string was wrong if it leads to an unusable event, such
                        // as an event without a time.
                        self.forget_event();
                        return Err(Broken::Syntax);
                    }
                    let lost = Lost::event(&self.cursor.bytes[self.start..self.cursor.at]);
                    self.remark_loss(fault, self.start, lost);
                    self.roll_back();
                }
                self.position += 1;
                if !self.notes.is_empty() {
                    self.commit_notes();
                }
                Ok(())
            }
            Err(broken) => {
                self.forget_event();
                Err(broken)
            }
        }
    }
}
