//! Why an insertion did not come to its end: the status that its owner is told, and what the log says.

use std::collections::BTreeMap;
use std::time::Duration;

use ndn_packet::Name;

use super::message::status;
use super::trust::Untrusted;
use crate::error::RepoError;
use crate::rate_limit::RateLimit;

/// Why an insertion did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ending {
    /// What the producer sent may not be kept.
    #[error("packet {packet}: {why}")]
    Untrusted { packet: Name, why: Untrusted },
    /// There was more than may be inserted.
    #[error("its packets come to more than {0} bytes; raise insert.max_size")]
    TooLarge(u64),
    /// The producer sent no more: why, as who fetched says.
    #[error("{0}")]
    NoEnd(String),
    /// The repository could not keep it.
    #[error(transparent)]
    Disk(#[from] RepoError),
    /// The system gives no thread.
    #[error("can't start a thread: {0}")]
    Thread(std::io::Error),
    /// The thread that commits has ended, or has more to do than it may have.
    #[error("the thread that commits to the disk takes no more")]
    NoCommit,
}

impl Ending {
    /// What its owner is told, one of [`status`].
    pub fn status(&self) -> u64 {
        match self {
            Ending::Untrusted { .. } => status::UNTRUSTED_DATA,
            Ending::TooLarge(_) | Ending::NoEnd(_) => status::NO_END,
            Ending::Disk(_) | Ending::Thread(_) | Ending::NoCommit => status::FAILED,
        }
    }
}

/// Logs why commands and insertions were refused, each status seldom enough that nobody can fill a disk by it.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    limits: BTreeMap<u64, RateLimit>,
}

impl RefusalLog {
    /// A command, or what it had begun, ends with this status, and why.
    pub fn refused(
        &mut self,
        now: Duration,
        status: u64,
        what: &str,
        name: Option<&Name>,
        why: &dyn std::fmt::Display,
    ) {
        let Some(left_out) = self.limits.entry(status).or_default().allows(now) else {
            return;
        };
        let name = name.map_or_else(|| String::from("none"), Name::to_string);
        tracing::warn!(status, %name, %why, left_out, "{what} refused");
    }
}
