//! Why something is not here, and what the caller of a system call is told of it.

use fuser::Errno;
use ndn_endpoint::{ExchangeError, FailReason};

/// Why something did not come.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Nobody answered in time.
    #[error("{0}")]
    Silent(String),
    /// The network knows no way there.
    #[error("{0}")]
    Unreachable(String),
    /// What came is not what was signed.
    #[error("{0}")]
    Unverified(String),
    /// Its producer says that there is no such thing.
    #[error("{0}")]
    Absent(String),
    /// What came can't be read as what it should be.
    #[error("{0}")]
    Malformed(String),
    /// There is no room here for what is needed to verify it, or to list it.
    #[error("{0}")]
    NoRoom(String),
    /// The loop that talks with the forwarder is no more.
    #[error("the mount's way to the network has ended; unmount it and mount it anew")]
    Ended,
    /// The mount ends.
    #[error("the mount ends")]
    Stopped,
    /// Who called has been ended.
    #[error("nobody waits for it any more")]
    Unwanted,
}

impl From<&ExchangeError> for RemoteError {
    fn from(error: &ExchangeError) -> Self {
        let text = error.to_string();
        match error {
            ExchangeError::Timeout { .. } => Self::Silent(text),
            ExchangeError::Nack { .. } => Self::Unreachable(text),
            ExchangeError::Rejected { .. } => Self::Unverified(text),
        }
    }
}

impl From<&FailReason> for RemoteError {
    fn from(reason: &FailReason) -> Self {
        let text = reason.to_string();
        match reason {
            FailReason::NoRoute { .. } => Self::Unreachable(text),
            FailReason::Rejected { .. } => Self::Unverified(text),
            FailReason::Refused { .. } => Self::Absent(text),
            _ => Self::Silent(text),
        }
    }
}

impl RemoteError {
    /// Whether nothing came at all.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Silent(_) | Self::Stopped | Self::Ended)
    }

    /// What the caller is told; the log tells more of what an operator must look after.
    pub fn told(&self) -> Errno {
        match self {
            Self::Absent(_) => return Errno::ENOENT,
            Self::Unwanted => return Errno::EINTR,
            Self::Stopped => {}
            Self::Silent(_) | Self::Unreachable(_) => tracing::warn!(error = %self, "a call fails"),
            _ => tracing::error!(error = %self, "a call fails"),
        }
        match self {
            Self::Silent(_) => Errno::ETIMEDOUT,
            Self::Unreachable(_) => Errno::EHOSTUNREACH,
            _ => Errno::EIO,
        }
    }
}
