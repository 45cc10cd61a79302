//! Finalized replicas as named data: segments are made from the block's files
//! when they are asked for, nothing is kept.
//!
//! ```text
//!   Interest ─▶ loop: whose block? ──known──▶ workers: read, digest ─▶ Data
//!                        │ not known                    ▲
//!                        ▼                              │
//!                  request to Java ──answer: paths──────┘
//!                        └────────── none of ours ─▶ Nack
//! ```
//!
//! Where blocks have tokens the source is *guarded*: it serves segments sealed
//! and nothing else, and gives the key to whoever proves to have a token that
//! Java says may read ([`content_key`](crate::content_key)).
//!
//! What Java answered is believed for [`ANSWER_LIFETIME`] or until it is
//! invalidated. "None of ours" is not remembered: the block may be finalized a
//! moment later.

mod answer;
mod counters;
mod found;
mod known;
mod replica;
mod request;
mod serve;
mod served;
mod shared;
mod source;
#[cfg(test)]
mod tests;
mod waiting;
mod workers;

use std::time::Duration;

pub use answer::{Answer, Secrets, Written};
pub use counters::BlockSourceStats;
pub use replica::{META_HEADER_LEN, Replica, ReplicaError};
pub use served::SealedByWrite;
pub use source::BlockSource;

/// How long an answer of Java is believed, and its files stay open unused.
pub const ANSWER_LIFETIME: Duration = Duration::from_secs(5);
/// How long Java may take to answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long caches may give out metadata as fresh. Short: an append changes it.
pub const METADATA_FRESHNESS: Duration = Duration::from_millis(200);
