//! Tracks: the pairs of process and thread, or device and stream, that events belong to.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::interner::ChunkInterner;
use crate::json::Raw;

/// A pid or tid: a number, or a text by its number in an interner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    #[default]
    Missing,
    Number(i64),
    Text(u32),
}

impl Lane {
    pub(crate) fn number(self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Missing | Self::Text(_) => None,
        }
    }

    pub(crate) fn text(self) -> Option<u32> {
        match self {
            Self::Text(id) => Some(id),
            Self::Missing | Self::Number(_) => None,
        }
    }

    fn of<'a>(raw: Option<Raw<'a>>, strings: &mut ChunkInterner<'a>) -> Self {
        let Some(raw) = raw.filter(|raw| !raw.is_null()) else {
            return Self::Missing;
        };
        match std::str::from_utf8(raw.bytes).ok().and_then(|number| number.parse().ok()) {
            Some(number) => Self::Number(number),
            None => Self::Text(strings.intern(raw).0),
        }
    }
}

/// A process and a thread.
pub(crate) type Track = (Lane, Lane);

/// Numbers the distinct tracks of one chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkTracks<'a> {
    ids: FxHashMap<(Option<Raw<'a>>, Option<Raw<'a>>), u32>,
    tracks: Vec<Track>,
    last: Option<(Option<Raw<'a>>, Option<Raw<'a>>, u32)>,
}

impl<'a> ChunkTracks<'a> {
    /// The number of the track that `pid` and `tid` name.
    #[inline]
    pub(crate) fn intern(
        &mut self,
        pid: Option<Raw<'a>>,
        tid: Option<Raw<'a>>,
        strings: &mut ChunkInterner<'a>,
    ) -> u32 {
        if let Some((last_pid, last_tid, id)) = self.last {
            if last_pid == pid && last_tid == tid {
                return id;
            }
        }
        let id = match self.ids.get(&(pid, tid)) {
            Some(&id) => id,
            None => {
                let id = self.tracks.len() as u32;
                self.tracks.push((Lane::of(pid, strings), Lane::of(tid, strings)));
                self.ids.insert((pid, tid), id);
                id
            }
        };
        self.last = Some((pid, tid, id));
        id
    }

    pub(crate) fn track(&self, id: u32) -> Track {
        self.tracks[id as usize]
    }

    pub(crate) fn into_tracks(self) -> Vec<Track> {
        self.tracks
    }
}

/// Numbers the distinct tracks of a whole file.
#[derive(Debug, Default)]
pub(crate) struct FileTracks {
    tracks: IndexSet<Track, FxBuildHasher>,
}

impl FileTracks {
    /// The number in the file of each track of a chunk, whose texts `strings` renumbers.
    pub(crate) fn map(&mut self, tracks: &[Track], strings: &[u32]) -> Vec<u32> {
        let renumbered = |lane| match lane {
            Lane::Text(id) => Lane::Text(strings[id as usize]),
            Lane::Missing | Lane::Number(_) => lane,
        };
        tracks
            .iter()
            .map(|&(process, thread)| {
                self.tracks.insert_full((renumbered(process), renumbered(thread))).0 as u32
            })
            .collect()
    }

    /// The tracks by number.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = Track> + '_ {
        self.tracks.iter().copied()
    }
}
