//! What a file was like: what had to be repaired, what was dropped, where.

use serde_json::{json, Value};

/// How many places of one kind of fault are remembered.
const MOST_OFFSETS: usize = 5;
/// How much text of the first place is kept.
const EXAMPLE_BYTES: usize = 120;

/// What happened to the bytes a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The event is there, with the meaning its writer most likely had.
    Repaired,
    /// The event or value is gone.
    Dropped,
    /// Nothing is lost, but a reader of the numbers should know.
    Note,
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $severity:ident;)*) => {
        /// Kinds of findings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// All kinds, in the order they are reported.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What happened to the bytes.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

faults! {
    /// A string held a quote that was not escaped.
    UnescapedQuote = "unescaped_quote", Repaired;
    /// A backslash stood before a character that needs none.
    BadEscape = "bad_escape", Repaired;
    /// Bytes of a string are not UTF-8.
    InvalidUtf8 = "invalid_utf8", Repaired;
    /// A string held a raw control character.
    ControlCharacter = "control_character", Repaired;
    /// NaN, inf, N/A or the like stood where JSON wants a value.
    BareLiteral = "bare_literal", Repaired;
    /// A comma too many.
    StrayComma = "stray_comma", Repaired;
    /// An event without a name.
    MissingName = "missing_name", Repaired;
    /// A complete event without a duration; it is kept with 0.
    MissingDuration = "missing_duration", Repaired;
    /// An event without a phase; it is kept as a complete event.
    MissingPhase = "missing_phase", Repaired;
    /// A negative duration, kept as 0.
    NegativeDuration = "negative_duration", Repaired;
    /// A value of top-level metadata that is no JSON; its text is kept.
    BrokenMetadata = "broken_metadata", Repaired;
    /// An arg's value does not fit its column; its text is kept in `extra_args`.
    UnexpectedValue = "unexpected_value", Note;
    /// An event that could not be read at all.
    BrokenEvent = "broken_event", Dropped;
    /// An event without a usable time.
    MissingTime = "missing_time", Dropped;
    /// A time that does not fit 64 bits.
    TimeOverflow = "time_overflow", Dropped;
    /// An event whose phase means nothing to us.
    UnknownPhase = "unknown_phase", Dropped;
    /// An end without a beginning.
    UnmatchedEnd = "unmatched_end", Dropped;
    /// A beginning without an end, kept with duration 0.
    UnmatchedBegin = "unmatched_begin", Repaired;
    /// Bytes between events that belong to none.
    Garbage = "garbage_between_events", Dropped;
    /// The file stops in the middle; the last event is lost.
    TruncatedJson = "truncated_json", Dropped;
    /// The closing brackets are missing, but no event is lost.
    MissingEnd = "missing_end", Repaired;
    /// Something stands after the end of the JSON.
    TrailingGarbage = "trailing_garbage", Note;
    /// The compressed stream stops or breaks in the middle.
    TruncatedCompression = "truncated_compression", Dropped;
}

/// One kind of finding in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub fault: Fault,
    /// How often it was seen.
    pub count: u64,
    /// The first places: byte offsets in the uncompressed text.
    pub offsets: Vec<u64>,
    /// Text around the first place.
    pub example: String,
}

/// Findings of a file or a part of it, one entry a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    findings: Vec<Finding>,
}

impl Health {
    /// Count a finding at `offset`, with the text around it.
    pub(crate) fn add(&mut self, fault: Fault, offset: u64, text: &[u8]) {
        let finding = self.entry(fault);
        finding.count += 1;
        if finding.offsets.len() < MOST_OFFSETS {
            finding.offsets.push(offset);
        }
        if finding.example.is_empty() {
            finding.example =
                String::from_utf8_lossy(&text[..text.len().min(EXAMPLE_BYTES)]).trim().to_owned();
        }
    }

    /// Add the findings of a later part of the same file.
    pub(crate) fn merge(&mut self, later: Self) {
        for other in later.findings {
            let finding = self.entry(other.fault);
            finding.count += other.count;
            let room = MOST_OFFSETS - finding.offsets.len();
            finding.offsets.extend(other.offsets.into_iter().take(room));
            if finding.example.is_empty() {
                finding.example = other.example;
            }
        }
    }

    /// How often a fault was seen.
    pub(crate) fn count(&self, fault: Fault) -> u64 {
        self.findings.iter().find(|finding| finding.fault == fault).map_or(0, |finding| finding.count)
    }

    fn entry(&mut self, fault: Fault) -> &mut Finding {
        let at = self.findings.iter().position(|finding| finding.fault == fault).unwrap_or_else(|| {
            self.findings.push(Finding { fault, count: 0, offsets: Vec::new(), example: String::new() });
            self.findings.len() - 1
        });
        &mut self.findings[at]
    }

    /// The findings, in the order of [`Fault::ALL`].
    #[must_use]
    pub fn findings(&self) -> Vec<&Finding> {
        Fault::ALL
            .iter()
            .filter_map(|&fault| self.findings.iter().find(|finding| finding.fault == fault))
            .collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        self.findings()
            .into_iter()
            .map(|finding| {
                json!({
                    "kind": finding.fault.name(),
                    "severity": match finding.fault.severity() {
                        Severity::Repaired => "repaired",
                        Severity::Dropped => "dropped",
                        Severity::Note => "note",
                    },
                    "count": finding.count,
                    "offsets": finding.offsets,
                    "example": finding.example,
                })
            })
            .collect()
    }
}
