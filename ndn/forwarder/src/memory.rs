//! The memory account of a forwarder: what each table holds, and what it may hold.

/// Memory of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryUse {
    /// Bytes held now.
    pub bytes: usize,
    /// Bytes that may be held.
    pub capacity_bytes: usize,
}

/// Memory of all tables of a forwarder; see [`Forwarder::memory`](crate::Forwarder::memory). The bounds are those of
/// [`Config`](crate::Config).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TableMemory {
    /// Packets in the content store, with the store's entries.
    pub content_store: MemoryUse,
    /// Pending Interests: names, nonces, tokens, in- and out-records, and the index by face.
    pub pit: MemoryUse,
    /// Routes, the FIB that follows from them, and strategy choices.
    pub routes: MemoryUse,
    /// Nonces of finished Interests.
    pub dead_nonces: MemoryUse,
    /// What strategies remember, such as the faces that self-learning has learned.
    pub strategies: MemoryUse,
    /// Answers of management that are kept for those who ask again: replies, datasets, notifications.
    pub management: MemoryUse,
    /// Packets and requests that the driver has not taken yet.
    pub outputs: MemoryUse,
}

impl TableMemory {
    /// All tables, with the names that status shows them by.
    pub fn tables(&self) -> [(&'static str, MemoryUse); 7] {
        [
            ("content_store", self.content_store),
            ("pit", self.pit),
            ("routes", self.routes),
            ("dead_nonces", self.dead_nonces),
            ("strategies", self.strategies),
            ("management", self.management),
            ("outputs", self.outputs),
        ]
    }

    /// All tables together.
    pub fn total(&self) -> MemoryUse {
        let add = |sum: MemoryUse, (_, one): (&str, MemoryUse)| MemoryUse {
            bytes: sum.bytes.saturating_add(one.bytes),
            capacity_bytes: sum.capacity_bytes.saturating_add(one.capacity_bytes),
        };
        self.tables().into_iter().fold(MemoryUse::default(), add)
    }
}
