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
//! What Java answered is believed for [`ANSWER_LIFETIME`] or until it is
//! invalidated. "None of ours" is not remembered: the block may be finalized a
//! moment later.

mod counters;
mod known;
mod replica;
mod request;
mod serve;
mod shared;
mod source;
mod workers;

use std::time::Duration;

pub use counters::BlockSourceStats;
pub use replica::{META_HEADER_LEN, Replica, ReplicaError};
pub use source::{Answer, BlockSource};

/// How long an answer of Java is believed, and its files stay open unused.
pub const ANSWER_LIFETIME: Duration = Duration::from_secs(5);
/// How long Java may take to answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long caches may give out metadata as fresh. Short: an append changes it.
pub const METADATA_FRESHNESS: Duration = Duration::from_millis(200);
