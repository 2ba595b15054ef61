//! Predicts the layout of an event from earlier events: a profiler always writes the same keys in the same order, with
//! the same spaces between them.
//!
//! The layouts are stored as a tree of steps. A step is the text from the end of one value to the beginning of the next
//! value, such as `, "ts": `. If the text continues with a stored step, the reader only compares a few machine words
//! instead of parsing the key. Any other text is read byte by byte, so a wrong prediction costs time but does not
//! change the result.

use crate::json::Raw;

/// Limit on the number of steps in a tree. A tree reaches it only if the events have no common layout; more steps would
/// not help then.
const MOST_STEPS: usize = 1 << 10;
/// Limit on the number of steps that can follow one step; to find the next step, the reader compares each of them.
const MOST_NEXT: usize = 12;
/// Number of bytes at the beginning of a step that are compared at once; few steps have more bytes.
const HEAD_BYTES: usize = 32;
/// Number of kinds of objects that can be nested in an event.
const INNER_KINDS: usize = 3;

/// Used instead of a step number if the layout of the current event is unknown; until the next event, no more steps are
/// predicted or stored. Also means that there is no next step.
const LOST: u16 = 0;
/// The number of the root step; an event begins with one of the steps that follow it.
const ROOT: u16 = 1;

type Words = [u64; HEAD_BYTES / 8];

/// Either a key of an object and the meaning of this key, or the end of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member<'a, M> {
    pub(super) key: &'a [u8],
    pub(super) meaning: M,
    /// The value, if it was read together with the key.
    pub(super) value: Option<Raw<'a>>,
}

#[derive(Debug)]
struct Step<'a, M> {
    head: Words,
    /// The bits of `head` to compare.
    mask: Words,
    text: &'a [u8],
    member: Member<'a, M>,
    /// The first step that can follow this one.
    first_next: u16,
    /// The step to try next if this one does not match; both can follow the same previous step.
    sibling: u16,
    /// One entry for each kind of object that can be nested after this step: the number of the root step of that kind's
    /// layout, or [`LOST`] if no such object has been read after this step.
    inner: [u16; INNER_KINDS],
}

impl<M> Step<'_, M> {
    #[inline]
    fn matches_head(&self, head: &Words) -> bool {
        (0..head.len()).fold(0, |differs, at| differs | ((head[at] ^ self.head[at]) & self.mask[at])) == 0
    }
}

/// The layouts of the events read so far, and the position of the current event in them.
#[derive(Debug)]
pub(super) struct Layout<'a, M> {
    steps: Vec<Step<'a, M>>,
    at: u16,
}

impl<'a, M: Copy> Layout<'a, M> {
    /// Create a layout with only the steps [`LOST`] and [`ROOT`], which both get the meaning `nothing`.
    pub(super) fn new(nothing: M) -> Self {
        let mut layout = Self { steps: Vec::new(), at: LOST };
        let member = Member { key: b"", meaning: nothing, value: None };
        layout.push(b"", member);
        layout.push(b"", member);
        layout
    }

    /// Predict the beginning of an event.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.at = ROOT;
    }

    /// Predict nothing until the next event begins.
    pub(super) fn lose(&mut self) {
        self.at = LOST;
    }

    /// Enter the nested object that begins after the current step; `kind` is the kind of that object.
    #[inline]
    pub(super) fn enter(&mut self, kind: usize) {
        let inner = self.steps[usize::from(self.at)].inner[kind];
        self.at = if inner == LOST { self.add_inner(kind) } else { inner };
    }

    /// The member read last. Returns a reference, because copying the member would delay the instructions that follow.
    #[inline]
    pub(super) fn member(&self) -> &Member<'a, M> {
        &self.steps[usize::from(self.at)].member
    }

    /// Move to the stored step that matches the beginning of the text, if there is one; returns the step's length.
    #[inline]
    pub(super) fn step(&mut self, text: &[u8]) -> Option<usize> {
        let head = words(text.first_chunk()?);
        let next = self.steps[usize::from(self.at)].first_next;
        let step = &self.steps[usize::from(next)];
        if next != LOST && step.text.len() <= HEAD_BYTES && step.matches_head(&head) {
            self.at = next;
            return Some(step.text.len());
        }
        self.other_step(next, &head, text)
    }

    /// Continue [`Self::step`]: compare the text with `next`, then with each sibling after it, until one matches.
    #[inline(never)]
    fn other_step(&mut self, mut next: u16, head: &Words, text: &[u8]) -> Option<usize> {
        while next != LOST {
            let step = &self.steps[usize::from(next)];
            if step.matches_head(head) && text.starts_with(step.text) {
                self.at = next;
                return Some(step.text.len());
            }
            next = step.sibling;
        }
        None
    }

    /// Move to a new step, and store it unless too many steps are stored already.
    pub(super) fn learn(&mut self, text: &'a [u8], member: Member<'a, M>) {
        let from = usize::from(self.at);
        self.at = LOST;
        let siblings = self.siblings(self.steps[from].first_next);
        if from != usize::from(LOST) && siblings.len() < MOST_NEXT {
            self.at = self.push(text, member);
            match siblings.last() {
                Some(&last) => self.steps[last].sibling = self.at,
                None => self.steps[from].first_next = self.at,
            }
        }
        self.steps[usize::from(self.at)].member = member;
    }

    fn siblings(&self, first: u16) -> Vec<usize> {
        let known = |at: u16| (at != LOST).then_some(usize::from(at));
        std::iter::successors(known(first), |&at| known(self.steps[at].sibling)).collect()
    }

    #[cold]
    fn add_inner(&mut self, kind: usize) -> u16 {
        if self.at == LOST {
            return LOST;
        }
        let added = self.push(b"", self.steps[usize::from(ROOT)].member);
        self.steps[usize::from(self.at)].inner[kind] = added;
        added
    }

    /// Store a step and return its number; return `LOST` if [`MOST_STEPS`] steps are already stored.
    fn push(&mut self, text: &'a [u8], member: Member<'a, M>) -> u16 {
        if self.steps.len() >= MOST_STEPS {
            return LOST;
        }
        let length = text.len().min(HEAD_BYTES);
        let (mut head, mut mask) = ([0; HEAD_BYTES], [0; HEAD_BYTES]);
        head[..length].copy_from_slice(&text[..length]);
        mask[..length].fill(0xFF);
        let (head, mask) = (words(&head), words(&mask));
        let inner = [LOST; INNER_KINDS];
        self.steps.push(Step { head, mask, text, member, first_next: LOST, sibling: LOST, inner });
        (self.steps.len() - 1) as u16
    }
}

#[inline]
fn words(bytes: &[u8; HEAD_BYTES]) -> Words {
    std::array::from_fn(|at| std::array::from_fn(|byte| bytes[8 * at + byte])).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PADDING: &str = "                                ";

    fn member(key: &[u8], meaning: u8) -> Member<'_, u8> {
        Member { key, meaning, value: None }
    }

    /// Read the steps in order and add the unknown ones to the layout; return how many were already in the layout.
    fn walk<'a>(layout: &mut Layout<'a, u8>, steps: &[&'a str]) -> usize {
        layout.begin();
        let known = steps.iter().filter(|step| match layout.step(format!("{step}{PADDING}").as_bytes()) {
            Some(length) => {
                assert_eq!((length, layout.member().key), (step.len(), step.as_bytes()));
                true
            }
            None => {
                layout.learn(step.as_bytes(), member(step.as_bytes(), 0));
                assert_eq!(layout.member().key, step.as_bytes());
                false
            }
        });
        known.count()
    }

    /// All steps of a repeated layout are known; if a layout branches off from a known one, its steps are known up to
    /// the branch.
    #[test]
    fn repeated_layouts_are_known() {
        let mut layout = Layout::new(0);
        assert_eq!(walk(&mut layout, &["{\"ph\": ", ", \"ts\": ", "}"]), 0);
        assert_eq!(walk(&mut layout, &["{\"ph\": ", ", \"ts\": ", "}"]), 3);
        assert_eq!(walk(&mut layout, &["{\"ph\": ", ", \"dur\": ", "}"]), 1);
        assert_eq!(walk(&mut layout, &["{\"ph\": ", ", \"dur\": ", "}"]), 3);
        assert_eq!(walk(&mut layout, &["{ \"ph\": "]), 0);
    }

    /// The layout distinguishes steps even if they differ only after their first [`HEAD_BYTES`] bytes.
    #[test]
    fn long_steps() {
        let [one, other] = ["1", "2"].map(|end| format!(",{PADDING}\"{end}\": "));
        let mut layout = Layout::new(0);
        assert_eq!(walk(&mut layout, &[&one]), 0);
        assert_eq!(walk(&mut layout, &[&other]), 0);
        assert_eq!(walk(&mut layout, &[&one]), 1);
        assert_eq!(walk(&mut layout, &[&other]), 1);
    }

    /// At most [`MOST_STEPS`] steps are stored; the layout does not learn any further steps.
    #[test]
    fn stored_steps_are_bounded() {
        let mut layout = Layout::new(0);
        let texts: Vec<String> = (0..100_000).map(|number| format!(", \"{number}\": ")).collect();
        for text in &texts {
            walk(&mut layout, &[text]);
        }
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        walk(&mut layout, &all);
        assert!(layout.steps.len() <= MOST_STEPS);
        assert_eq!(walk(&mut layout, &["}"]), 0);
    }

    /// Nested objects of different kinds that begin after the same step have separate layouts.
    #[test]
    fn nested_objects() {
        let mut layout = Layout::new(0);
        let mut known = |kind| {
            layout.begin();
            layout.enter(kind);
            let known =
                layout.step(format!("{{\"a\": {PADDING}").as_bytes()).map(|_| layout.member().meaning);
            if known.is_none() {
                layout.learn(b"{\"a\": ", member(b"a", kind as u8));
            }
            known
        };
        assert_eq!([known(1), known(2), known(1), known(2)], [None, None, Some(1), Some(2)]);
    }
}
