//! The text after a list of events: keys of the same object, further lists and documents, and garbage.

use super::beginning::{read_beginning, Beginning, Head};
use super::header::{entry, Entry, Header};
use crate::health::{Fault, Health, Lost};
use crate::json::scan;
use crate::json::{Broken, Cursor};

/// Limit on the bytes of one metadata value.
pub(crate) const MOST_METADATA_BYTES: usize = 64 << 20;
/// Bytes of garbage to keep for the next search, since the beginning of an event may straddle two pieces.
const LOOK_BACK: usize = 1 << 12;

/// The part of the file to which the text after the events belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// The object that contains the list of events.
    Object,
    /// No document: the text follows a complete document and comes before the next one, if there is one.
    Nothing,
    /// Garbage up to the next event.
    Garbage,
}

/// How reading continues after the events.
#[derive(Debug)]
pub(crate) enum GoesOn {
    /// Events begin at this position.
    WithEvents(usize),
    /// The text up to this position was processed; more text is needed to continue.
    ByMore(usize),
}

/// Reads the text after a list of events.
#[derive(Debug)]
pub(crate) struct Tail {
    within: Within,
    /// Whether the list was inside an object, so that more keys may follow.
    in_object: bool,
    /// The header of the next document.
    pub(crate) later: Option<Header>,
}

impl Tail {
    pub(crate) fn new(in_object: bool) -> Self {
        Self { within: if in_object { Within::Object } else { Within::Nothing }, in_object, later: None }
    }

    /// Whether the next events are in a list inside an object.
    pub(crate) fn is_in_object(&self) -> bool {
        self.in_object
    }

    /// Read `text`, which begins at `offset` of the file. If `is_all` is true, the file ends with this text.
    pub(crate) fn read(
        &mut self,
        text: &[u8],
        offset: u64,
        is_all: bool,
        header: &mut Header,
        health: &mut Health,
    ) -> GoesOn {
        let mut at = 0;
        loop {
            let head = Head { text: &text[at..], offset: offset + at as u64, is_all };
            let before = self.within;
            let goes_on = match self.within {
                Within::Object => self.read_keys(head, header, health),
                Within::Nothing => self.read_between(head, health),
                Within::Garbage => self.pass_garbage(head, health),
            };
            match goes_on {
                GoesOn::WithEvents(next) => {
                    self.within = if self.in_object { Within::Object } else { Within::Nothing };
                    return GoesOn::WithEvents(at + next);
                }
                GoesOn::ByMore(0) if self.within == before => return GoesOn::ByMore(at),
                GoesOn::ByMore(done) => at += done,
            }
        }
    }

    /// Read keys and values up to the closing brace.
    fn read_keys(&mut self, head: Head<'_>, header: &mut Header, health: &mut Health) -> GoesOn {
        let mut cursor = Cursor::new(head.text, 0);
        loop {
            let begin = cursor.at;
            match entry(&mut cursor, head.offset, false, health) {
                Ok(Entry::Value(key, at)) => {
                    header.add(key, &head.text[at..cursor.at], head.offset + at as u64, health);
                }
                Ok(Entry::End) => {
                    self.leave(Within::Nothing);
                    return GoesOn::ByMore(cursor.at);
                }
                Ok(Entry::Events) => {
                    health.add(
                        Fault::RepeatedEvents,
                        head.offset + cursor.at as u64,
                        &head.text[cursor.at..],
                    );
                    return GoesOn::WithEvents(cursor.at);
                }
                Err(Broken::EndOfInput) if !head.is_all && head.text.len() - begin < MOST_METADATA_BYTES => {
                    return GoesOn::ByMore(begin);
                }
                Err(Broken::EndOfInput) if head.is_all && !scan::holds_list_or_event(&head.text[begin..]) => {
                    self.leave(Within::Nothing);
                    return cut_off(head, begin, health);
                }
                Err(_) => {
                    self.within = Within::Garbage;
                    return GoesOn::ByMore(begin);
                }
            }
        }
    }

    /// Read the text after a complete document.
    fn read_between(&mut self, head: Head<'_>, health: &mut Health) -> GoesOn {
        let mut cursor = Cursor::new(head.text, 0);
        cursor.skip_space();
        let begin = cursor.at;
        match cursor.peek() {
            _ if cursor.is_at_end() => GoesOn::ByMore(begin),
            0 => {
                let length = head.text[begin..].iter().position(|&byte| byte != 0);
                let end = length.map_or(head.text.len(), |length| begin + length);
                let lost = Lost::bytes((end - begin) as u64);
                health.add_loss(Fault::ZeroPadding, head.offset + begin as u64, b"", lost);
                if length.is_none() {
                    return GoesOn::ByMore(end);
                }
                self.within = Within::Garbage;
                GoesOn::ByMore(end)
            }
            b'{' if scan::is_event(head.text, begin) => {
                health.add(Fault::StrayBracket, head.offset + begin as u64, &head.text[begin..]);
                GoesOn::WithEvents(begin)
            }
            b'{' | b'[' => self.read_document(head, begin, health),
            _ => {
                self.within = Within::Garbage;
                GoesOn::ByMore(begin)
            }
        }
    }

    /// Read the beginning of another document.
    fn read_document(&mut self, head: Head<'_>, begin: usize, health: &mut Health) -> GoesOn {
        let (mut header, mut findings) = (Header::default(), Health::default());
        let text = &head.text[begin..];
        let is_all = head.is_all || text.len() > MOST_METADATA_BYTES;
        let document = Head { text, offset: head.offset + begin as u64, is_all };
        match read_beginning(document, &mut header, &mut findings) {
            Beginning::Events { at, in_object } => {
                self.in_object = in_object;
                self.later = Some(header);
                health.merge(findings);
                health.add(Fault::AnotherDocument, document.offset, text);
                GoesOn::WithEvents(begin + at)
            }
            Beginning::NeedMore if !is_all => GoesOn::ByMore(begin),
            Beginning::NoEvents(at) => {
                let lost = Lost::text(&text[..at]);
                health.add_loss(Fault::TrailingGarbage, document.offset, text, lost);
                GoesOn::ByMore(begin + at)
            }
            Beginning::NeedMore | Beginning::SomethingElse(_) => {
                self.within = Within::Garbage;
                GoesOn::ByMore(begin)
            }
        }
    }

    /// Skip garbage up to the next event, and count the skipped bytes.
    fn pass_garbage(&mut self, head: Head<'_>, health: &mut Health) -> GoesOn {
        let text = head.text;
        let list = scan::next_list_of_events(text, 0);
        let event = scan::next_sure_event(&text[..list.unwrap_or(text.len())], 0);
        let next = event.or(list);
        let end = match next {
            Some(at) => at,
            None if head.is_all => text.len(),
            None => text.len().saturating_sub(LOOK_BACK),
        };
        let passed = text[..end].trim_ascii();
        if passed.iter().any(|byte| !matches!(byte, 0 | b',' | b']')) {
            let lost = Lost::text(&text[..end]);
            health.add_loss(Fault::TrailingGarbage, head.offset, text, lost);
        } else if next.is_some() {
            health.add(Fault::StrayBracket, head.offset, text);
        } else if !passed.is_empty() {
            health.add_loss(Fault::TrailingGarbage, head.offset, text, Lost::bytes(passed.len() as u64));
        }
        match next {
            Some(at) => {
                self.in_object = self.in_object || event.is_none();
                GoesOn::WithEvents(at)
            }
            None => GoesOn::ByMore(end),
        }
    }

    fn leave(&mut self, within: Within) {
        self.within = within;
        self.in_object = false;
    }
}

/// Report that the file ends within the keys after the events.
fn cut_off(head: Head<'_>, begin: usize, health: &mut Health) -> GoesOn {
    let rest = head.text[begin..].trim_ascii();
    let offset = head.offset + begin as u64;
    if rest.is_empty() {
        health.add(Fault::MissingEnd, offset, rest);
    } else {
        health.add_loss(Fault::TruncatedJson, offset, rest, Lost::text(rest));
    }
    GoesOn::ByMore(head.text.len())
}
