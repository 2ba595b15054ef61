//! Tracks: the pairs of process and thread, or device and stream, to which events belong.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::json::{Blemishes, Raw};
use crate::tables::interner::ChunkInterner;

/// A pid or tid: a number or, if it is text, the number of this text in an interner.
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

    /// Convert a pid or tid to a lane; if it is text, also return the faults found in this text.
    fn of<'a>(raw: Option<Raw<'a>>, strings: &mut ChunkInterner<'a>) -> (Self, Blemishes) {
        let Some(raw) = raw.filter(|raw| !raw.is_null()) else {
            return (Self::Missing, Blemishes::default());
        };
        match std::str::from_utf8(raw.bytes).ok().and_then(|number| number.parse().ok()) {
            Some(number) => (Self::Number(number), Blemishes::default()),
            None => {
                let (id, blemishes) = strings.intern(raw);
                (Self::Text(id), blemishes)
            }
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
    /// Return the number of the track with this `pid` and `tid`. If the track is new, also return the faults found in
    /// the texts of `pid` and `tid`.
    #[inline]
    pub(crate) fn intern(
        &mut self,
        pid: Option<Raw<'a>>,
        tid: Option<Raw<'a>>,
        strings: &mut ChunkInterner<'a>,
    ) -> (u32, Blemishes) {
        if let Some((last_pid, last_tid, id)) = self.last {
            if last_pid == pid && last_tid == tid {
                return (id, Blemishes::default());
            }
        }
        let (id, blemishes) = match self.ids.get(&(pid, tid)) {
            Some(&id) => (id, Blemishes::default()),
            None => self.add(pid, tid, strings),
        };
        self.last = Some((pid, tid, id));
        (id, blemishes)
    }

    #[cold]
    fn add(
        &mut self,
        pid: Option<Raw<'a>>,
        tid: Option<Raw<'a>>,
        strings: &mut ChunkInterner<'a>,
    ) -> (u32, Blemishes) {
        let id = self.tracks.len() as u32;
        let (process, of_process) = Lane::of(pid, strings);
        let (thread, of_thread) = Lane::of(tid, strings);
        self.tracks.push((process, thread));
        self.ids.insert((pid, tid), id);
        (id, of_process.or(of_thread))
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
    /// Return, for each track of a chunk, its number in the file. `strings` maps each text's number in the chunk to its
    /// number in the file.
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

    /// The tracks in the order of their numbers.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = Track> + '_ {
        self.tracks.iter().copied()
    }
}
