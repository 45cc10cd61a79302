//! What can go wrong: at the mount, in the house's form; and what the system is told of a failed call.

use std::io;
use std::path::PathBuf;

use fuser::Errno;
use ndn_packet::Name;
use ndn_repo::RepoError;

use crate::remote_error::RemoteError;

/// Why there is no mount.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel's side of FUSE is missing.
    #[error(
        "/dev/fuse: is not there; load the kernel's module with modprobe fuse, or let the container have the device"
    )]
    NoFuse,
    /// The folder can't be mounted on.
    #[error("{path}: {cause}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, and the way out.
        cause: String,
    },
    /// The forwarder of a mount of a repository elsewhere can't be reached.
    #[error("no forwarder at {uri}: {cause}")]
    Forwarder {
        /// Where it should be.
        uri: String,
        /// What went wrong.
        cause: String,
    },
    /// There is nothing to be mounted by this name.
    #[error("{prefix}: {error}")]
    Remote {
        /// The name.
        prefix: Name,
        /// Why.
        #[source]
        error: RemoteError,
    },
    /// The system refused or ended the mount.
    #[error("{path}: {error}")]
    Session {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

/// What the caller of a system call is told.
pub(crate) fn errno(error: &RepoError) -> Errno {
    match error {
        _ if error.is_disk_full() => Errno::ENOSPC,
        RepoError::NotFound(_) => Errno::ENOENT,
        RepoError::NotEmpty(_) => Errno::ENOTEMPTY,
        RepoError::BadName { .. } => Errno::ENAMETOOLONG,
        RepoError::Io { error, .. } => io_errno(error),
        // Bit rot, among others: the log tells what.
        _ => Errno::EIO,
    }
}

/// As [`errno`], of what a disk said.
pub(crate) fn io_errno(error: &io::Error) -> Errno {
    match error.raw_os_error() {
        Some(code) if code > 0 => Errno::from_i32(code),
        _ if error.kind() == io::ErrorKind::StorageFull => Errno::ENOSPC,
        _ => Errno::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_rot_are_what_programs_know() {
        let full = RepoError::Io {
            path: "x".into(),
            error: io::ErrorKind::StorageFull.into(),
        };
        assert_eq!(errno(&full).code(), libc::ENOSPC);
        let damaged = RepoError::Damaged {
            name: Name::new(),
            cause: String::new(),
        };
        assert_eq!(errno(&damaged).code(), libc::EIO);
        let denied = io::Error::from_raw_os_error(libc::EDQUOT);
        assert_eq!(io_errno(&denied).code(), libc::EDQUOT);
    }
}
