//! Memory that a launch may touch, and who touched it.

use rustc_hash::FxHashMap;

/// Memory that a launch may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The address of the first byte.
    pub start: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Whether it may be written.
    pub writable: bool,
}

/// Who touches a place: a thread of a block, between two barriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) block: u32,
    pub(super) thread: u32,
    pub(super) epoch: u32,
}

/// How a place is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    /// An atomic operation or a relaxed access: these do not race with each other.
    Relaxed,
}

/// What is kept of a place.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    /// The last plain write.
    write: Option<Who>,
    /// The last relaxed access.
    relaxed: Option<Who>,
    /// Threads that read it: the last one, and whether there were others since the last barrier, or in other blocks.
    read: Option<Who>,
    others: bool,
    other_blocks: bool,
}

/// The history of a memory.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    places: FxHashMap<u64, Touched>,
}

/// Whether nothing orders two accesses of different threads.
fn unordered(a: Who, b: Who) -> bool {
    a.block != b.block || (a.epoch == b.epoch && a.thread != b.thread)
}

impl History {
    /// Notes an access; gives the thread that it races with, if there is one.
    pub(super) fn note(&mut self, place: u64, who: Who, touch: Touch) -> Option<Who> {
        let known = self.places.entry(place).or_default();
        let races = |other: Option<Who>| other.filter(|other| unordered(*other, who));
        let mut found = races(known.write);
        if touch == Touch::Write {
            found = found.or(races(known.relaxed));
        }
        if touch == Touch::Read {
            found = found.or(races(known.relaxed));
        } else {
            let reader = known.read.filter(|reader| {
                known.other_blocks
                    || reader.block != who.block
                    || (reader.epoch == who.epoch && (known.others || reader.thread != who.thread))
            });
            found = found.or(reader);
        }
        match touch {
            Touch::Write => known.write = Some(who),
            Touch::Relaxed => known.relaxed = Some(who),
            Touch::Read => {
                let before = known.read.unwrap_or(who);
                known.other_blocks |= before.block != who.block;
                let same = before.block == who.block && before.epoch == who.epoch;
                known.others = same && (known.others || before.thread != who.thread);
                known.read = Some(who);
            }
        }
        found
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }
}
