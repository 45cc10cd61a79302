//! How long replicated writes and jobs take, by fair shares of the links: for networks whose packets are too many.
//!
//! | for | use |
//! |---|---|
//! | fair shares of links | [`Shares`] |
//! | transfers that come and go, and a clock | [`Progress`] |
//! | writers, each block after block | [`writes`] |
//! | jobs that read, shuffle and write | [`jobs`] |
//!
//! What is a packet in [`write`](mod@crate::write) is a share of each link here. A block is one transfer: over TCP its
//! chain goes as fast as the slowest of its hops, each of which has its share; by name, and mirrored, it goes once over
//! each link of the tree to all replicas, as fast as the fullest of them lets it. Around it stand the chain's set-up and
//! the last acknowledgements, which wait in the queues of full links. Left out: losses, the time in which windows grow,
//! drift between replicas, all that hosts do.

mod jobs;
mod progress;
mod share;
mod transfers;
mod ways;
mod writes;

pub use jobs::{JobTimes, JobsPlan, draw_jobs, jobs};
pub use progress::{Happening, Progress};
pub use share::{Shares, Use};
pub use writes::{WriteTimes, writes};

use crate::block::Cut;
use crate::wire::Wire;

/// How a block's bytes reach its replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plane {
    /// From each replica to the next over TCP.
    Tcp,
    /// Pulled by name by all replicas.
    Named,
    /// Copied by switches from the writer's TCP connection.
    Mirror,
}

impl Plane {
    /// All of them.
    pub const ALL: [Plane; 3] = [Plane::Tcp, Plane::Named, Plane::Mirror];

    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Plane::Tcp => "tcp",
            Plane::Named => "named",
            Plane::Mirror => "mirror",
        }
    }
}

/// Sizes, and how exact times are to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeConfig {
    /// How payload becomes frames. Default Ethernet.
    pub wire: Wire,
    /// How blocks become segments.
    pub cut: Cut,
    /// Bytes of the header that sets a chain up. Default 640.
    pub setup_bytes: u64,
    /// Bytes of its answer. Default 70.
    pub setup_answer_bytes: u64,
    /// Bytes of an acknowledgement. Default 24.
    pub ack_bytes: u64,
    /// Bytes that a connection has on its way: so much of a full link's queue is its own. Default 4 MiB.
    pub window_bytes: u64,
    /// How full the queue of a full link is, of 1: what small messages wait for. Default 0.8, the middle of what CUBIC
    /// leaves of a queue that it overran, 0.7, and all of it.
    pub queues_filled: f64,
    /// Part of a transfer's time within which changes count together, where more than 256 transfers are under way; 0
    /// for exact shares. Default 1/64.
    pub part: f64,
    /// What chooses among equal ways.
    pub seed: u64,
}

impl Default for TimeConfig {
    fn default() -> Self {
        TimeConfig {
            wire: Wire::ETHERNET,
            cut: Cut::default(),
            setup_bytes: 640,
            setup_answer_bytes: 70,
            ack_bytes: 24,
            window_bytes: 4 << 20,
            queues_filled: 0.8,
            part: 1.0 / 64.0,
            seed: 1,
        }
    }
}
