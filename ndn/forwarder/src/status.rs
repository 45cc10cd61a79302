//! Figures of a whole forwarder.

use crate::face::FaceCounters;

/// Figures of a whole forwarder at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Faces, the internal one included.
    pub faces: usize,
    /// Names in the FIB.
    pub fib_entries: usize,
    /// Bytes of the FIB.
    pub fib_bytes: usize,
    /// Routes in the RIB.
    pub rib_routes: usize,
    /// Pending Interests.
    pub pit_entries: usize,
    /// Bytes of pending Interests.
    pub pit_bytes: usize,
    /// Data in the content store.
    pub cs_entries: usize,
    /// Bytes of the content store in use, entries included.
    pub cs_bytes: usize,
    /// Bytes of the content store's tables alone, spare room included.
    pub cs_table_bytes: usize,
    /// Bytes that the content store may use.
    pub cs_capacity_bytes: usize,
    /// Interests that the content store answered.
    pub cs_hits: u64,
    /// Interests that it did not.
    pub cs_misses: u64,
    /// Prefixes for which self-learning remembers a face.
    pub learned_prefixes: usize,
    /// Interests under self-learning that were sent to several faces at once.
    pub floods: u64,
    /// Pending Interests that were answered.
    pub satisfied_interests: u64,
    /// Pending Interests that were refused or expired.
    pub unsatisfied_interests: u64,
    /// What waits to be sent, as the driver has told last.
    pub queues: Queues,
    /// Packets of all faces together, those of faces gone included.
    pub packets: FaceCounters,
}

impl Status {
    /// Adds the figures of another worker of the same forwarder. Faces, routes and what the driver tells are the same with
    /// all of them.
    pub fn add(&mut self, other: &Status) {
        self.fib_bytes += other.fib_bytes;
        self.pit_entries += other.pit_entries;
        self.pit_bytes += other.pit_bytes;
        self.cs_entries += other.cs_entries;
        self.cs_bytes += other.cs_bytes;
        self.cs_table_bytes += other.cs_table_bytes;
        self.cs_capacity_bytes += other.cs_capacity_bytes;
        self.cs_hits += other.cs_hits;
        self.cs_misses += other.cs_misses;
        self.learned_prefixes += other.learned_prefixes;
        self.floods += other.floods;
        self.satisfied_interests += other.satisfied_interests;
        self.unsatisfied_interests += other.unsatisfied_interests;
        self.packets.add(&other.packets);
    }
}

/// What waits to be sent on all faces together. The driver keeps the queues; see
/// [`Forwarder::set_queues`](crate::Forwarder::set_queues).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queues {
    /// Bytes that wait.
    pub bytes: usize,
    /// Bytes that may wait.
    pub capacity_bytes: usize,
    /// Packets dropped because all faces together had too much waiting.
    pub refused: u64,
}
