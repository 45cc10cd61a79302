//! Why something is not here, and the errno that the caller of a system call gets.

use fuser::Errno;
use ndn_endpoint::{FetchError, FetchErrorKind};

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
    #[error("the mount's connection to the forwarder has ended; unmount it and mount it again")]
    Ended,
    /// The mount ends.
    #[error("the mount is being unmounted")]
    Stopped,
    /// Who called has been ended.
    #[error("the caller has ended")]
    Unwanted,
}

impl From<&FetchError> for RemoteError {
    fn from(error: &FetchError) -> Self {
        let text = error.to_string();
        match error.kind() {
            FetchErrorKind::Silent => Self::Silent(text),
            FetchErrorKind::Unreachable => Self::Unreachable(text),
            FetchErrorKind::Unverified => Self::Unverified(text),
            FetchErrorKind::Absent => Self::Absent(text),
            FetchErrorKind::Malformed => Self::Malformed(text),
            FetchErrorKind::NoRoom => Self::NoRoom(text),
        }
    }
}

impl RemoteError {
    /// Whether nothing came at all.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Silent(_) | Self::Stopped | Self::Ended)
    }

    /// The errno of the call that fails so; the log says more of what an operator must look after.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Absent(_) => return Errno::ENOENT,
            Self::Unwanted => return Errno::EINTR,
            Self::Stopped => {}
            Self::Silent(_) | Self::Unreachable(_) => {
                tracing::warn!(error = %self, "a system call failed")
            }
            _ => tracing::error!(error = %self, "a system call failed"),
        }
        match self {
            Self::Silent(_) => Errno::ETIMEDOUT,
            Self::Unreachable(_) => Errno::EHOSTUNREACH,
            _ => Errno::EIO,
        }
    }
}
