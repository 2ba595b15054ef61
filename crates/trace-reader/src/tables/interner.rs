//! Assigns a number to each distinct string. Strings of the same chunk are compared by their bytes; strings of
//! different chunks are compared by their decoded text.

use std::borrow::Cow;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::json::{decoded, expect_json, without_unescaping, Blemishes, Raw, Unfit};

/// Numbers the distinct strings of one chunk in order of appearance, without copying them.
#[derive(Debug, Default)]
pub(crate) struct ChunkInterner<'a> {
    ids: FxHashMap<&'a [u8], u32>,
    texts: Vec<Cow<'a, str>>,
    blemishes: Vec<Blemishes>,
    blemished: bool,
}

impl<'a> ChunkInterner<'a> {
    /// Return the number of a text, and the faults found in the text.
    #[inline]
    pub(crate) fn intern(&mut self, text: Raw<'a>) -> (u32, Blemishes) {
        let id = match self.ids.get(text.bytes) {
            Some(&id) => id,
            None => self.add(text),
        };
        let blemishes = if self.blemished { self.blemishes[id as usize] } else { Blemishes::default() };
        (id, blemishes)
    }

    #[cold]
    fn add(&mut self, text: Raw<'a>) -> u32 {
        let id = self.texts.len() as u32;
        let (meaning, mut blemishes) =
            if text.is_text() { decoded(text.bytes) } else { without_unescaping(text.bytes) };
        if text.is_composite() {
            // Line breaks are control characters, but are allowed between the elements of an array.
            blemishes.control_character = false;
            let unfit = expect_json(text.bytes).err();
            blemishes.broken_value = unfit == Some(Unfit::Broken);
            blemishes.deep_value = unfit == Some(Unfit::Deep);
        }
        self.blemished |= blemishes.any();
        self.texts.push(meaning);
        self.blemishes.push(blemishes);
        self.ids.insert(text.bytes, id);
        id
    }

    /// The distinct strings in the order of their numbers.
    pub(crate) fn into_texts(self) -> Vec<String> {
        self.texts.into_iter().map(Cow::into_owned).collect()
    }
}

/// Numbers the distinct strings of a whole file in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct FileInterner {
    texts: IndexSet<Box<str>, FxBuildHasher>,
}

impl FileInterner {
    /// Return, for each text of a chunk, its number in the whole file.
    pub(crate) fn map(&mut self, texts: &[String]) -> Vec<u32> {
        texts.iter().map(|text| self.intern(text)).collect()
    }

    fn intern(&mut self, text: &str) -> u32 {
        let at = self.texts.get_index_of(text).unwrap_or_else(|| self.texts.insert_full(text.into()).0);
        at as u32
    }

    /// The strings in the order of their numbers.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}
