//! Why an object is not here.

use ndn_packet::{DecodeError, Name};

use crate::{Distrust, ExchangeError, FailReason};

/// Why a fetch gave up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The question for metadata, or for the first segment, came to nothing.
    #[error(transparent)]
    Discovery(#[from] ExchangeError),
    /// The segments, or those of the manifest, did not come.
    #[error(transparent)]
    Stream(#[from] FailReason),
    /// The producer says, signed, that there is no such object (ContentType Nack).
    #[error("{name}: its producer says that there is no such object")]
    Absent {
        /// The object.
        name: Name,
    },
    /// The answer is no metadata.
    #[error("{name}: malformed metadata: {source}")]
    Malformed {
        /// Name of the answer.
        name: Name,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The metadata are not believed.
    #[error("{name}: {why}; {}", .why.way_out())]
    Untrusted {
        /// Name of the answer.
        name: Name,
        /// Why not.
        why: Distrust,
    },
    /// The manifest, or the object as a whole, does not have the digest that its metadata tell.
    #[error("{name}: is not what was signed: its digest differs from the one in the metadata")]
    NotTheSigned {
        /// Name of what came.
        name: Name,
    },
    /// The manifest can't be kept.
    #[error("{name}: no room to keep the manifest: {cause}")]
    NoRoom {
        /// Name of the manifest.
        name: Name,
        /// What its store says.
        cause: String,
    },
}

/// What kind of failure it was, for exit statuses and system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchErrorKind {
    /// Nobody answered in time.
    Silent,
    /// The network knows no way there.
    Unreachable,
    /// What came is not what was signed.
    Unverified,
    /// Its producer says that there is no such thing.
    Absent,
    /// What came can't be read as what it should be.
    Malformed,
    /// There is no room here for what is needed to verify it.
    NoRoom,
}

impl FetchError {
    /// What kind of failure it is.
    pub fn kind(&self) -> FetchErrorKind {
        match self {
            Self::Discovery(ExchangeError::Timeout { .. })
            | Self::Stream(FailReason::Stalled { .. } | FailReason::Lost { .. }) => {
                FetchErrorKind::Silent
            }
            Self::Discovery(ExchangeError::Nack { .. })
            | Self::Stream(FailReason::NoRoute { .. }) => FetchErrorKind::Unreachable,
            Self::Discovery(ExchangeError::Rejected { .. })
            | Self::Stream(FailReason::Rejected { .. })
            | Self::Untrusted { .. }
            | Self::NotTheSigned { .. } => FetchErrorKind::Unverified,
            Self::Stream(FailReason::Refused { .. }) | Self::Absent { .. } => {
                FetchErrorKind::Absent
            }
            Self::Malformed { .. } => FetchErrorKind::Malformed,
            Self::NoRoom { .. } => FetchErrorKind::NoRoom,
        }
    }
}
