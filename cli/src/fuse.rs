//! Mounting and unmounting, as `trunkline mount` and `trunkline repo run` do it.

use std::path::Path;

use ndn_mount::{Mount, MountError, MountOptions, RemoteError};
use ndn_repo::Repo;

use crate::error::{CliError, Exit, io_cause};

/// Mounts a repository that lies in `store`.
///
/// # Errors
/// Why there is no mount.
pub fn start(
    repo: &Repo,
    store: &Path,
    at: &Path,
    options: &MountOptions,
) -> Result<Mount, CliError> {
    take_small_pages();
    Mount::local(repo, store, at, options).map_err(|e| mount_error(&e))
}

/// A mount has large buffers that are used in part, on each of its threads: in huge pages they would take several times as
/// much memory as is used.
pub fn take_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "transparent huge pages could not be turned off");
    }
}

/// Unmounts it; what was written is published and durable then.
///
/// # Errors
/// What is not.
pub fn end(mount: Mount) -> Result<(), CliError> {
    mount.unmount().map_err(|e| mount_error(&e))
}

/// What the library says, in the house's form.
pub fn mount_error(error: &MountError) -> CliError {
    match error {
        MountError::NoFuse => CliError::said(Exit::Failed, error),
        MountError::Folder { .. } => CliError::said(Exit::Usage, error),
        MountError::Forwarder { .. } => CliError::said(Exit::NoForwarder, error)
            .or("start one with trunkline fwd run, or name another with --face"),
        MountError::Remote { error: cause, .. } => match cause {
            RemoteError::Unverified(_) => CliError::said(Exit::Unverified, cause)
                .or("give its owner's public key: --verify FILE"),
            _ => CliError::said(Exit::NoData, cause)
                .or("see whether a repository serves it, and whether the forwarders lead there"),
        },
        MountError::Session { path, error } => {
            let failed = CliError::failed(path.display().to_string(), io_cause(error));
            match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    failed.or("run as root, or install fuse3 for users to mount")
                }
                _ => failed,
            }
        }
    }
}
