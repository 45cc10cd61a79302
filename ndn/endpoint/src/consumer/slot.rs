//! The place of one segment in a consumer's ring.

use ndn_packet::Data;
use std::time::Duration;

/// ```text
///                  ┌── loss, Nack, lifetime over ──┐
///                  ▼                               │
///   (new) ──▶ Lost ───────── Interest sent ─────▶ Pending
///               ▲ ▲                                │ │
///     back-off  │ └───────── rejected ──────┐      │ └─ Nack ─▶ Held
///       over    │                           │      │
///             Held                      Received ◀─┘ Data (also out of Lost and Held)
///                                           │ read
///                                           ▼
///                                     out of the ring; Taken if an earlier one has to come again
/// ```
#[derive(Debug)]
pub(crate) enum SlotState {
    /// To be asked for, first or again; it stands in the queue of those.
    Lost,
    /// An Interest is outstanding.
    Pending,
    /// Refused by the network; to be asked for again at this time.
    Held(Duration),
    /// Here, waiting to be read.
    Received(Data),
    /// Read already, kept as a place because an earlier segment was rejected after it was read.
    Taken,
}

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) state: SlotState,
    /// Number of its last Interest among all of the stream's; 0 before the first.
    pub(crate) tx: u64,
    /// When its last Interest was sent.
    pub(crate) sent_at: Duration,
    /// Since when an answer is owed: asked for and known to exist. `None` while it may not be produced yet.
    pub(crate) due: Option<Duration>,
    /// Interests sent for it.
    pub(crate) transmissions: u32,
    /// How often it was lost or refused.
    pub(crate) losses: u32,
    /// Nonce of its last Interest.
    pub(crate) nonce: u32,
    /// Whether it was given up at a timeout and not asked for since.
    pub(crate) timed_out: bool,
    /// Whether a packet that came before was bad: caches, and whoever it came from, are to be passed by.
    pub(crate) rejected: bool,
}

impl Slot {
    pub(crate) fn new(state: SlotState, due: Option<Duration>) -> Self {
        Self {
            state,
            tx: 0,
            sent_at: Duration::ZERO,
            due,
            transmissions: 0,
            losses: 0,
            nonce: 0,
            timed_out: false,
            rejected: false,
        }
    }

    /// Whether it is neither here nor read.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(
            self.state,
            SlotState::Lost | SlotState::Pending | SlotState::Held(_)
        )
    }

    /// Whether its last Interest went out before the segment was known to exist.
    pub(crate) fn sent_early(&self) -> bool {
        self.due.is_none_or(|due| due > self.sent_at)
    }
}
