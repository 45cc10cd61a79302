//! `trunkline mount`: named data as files, until a signal or somebody else unmounts it.

use std::path::Path;
use std::time::Duration;

use ndn_mount::{Mount, MountError, MountOptions};
use ndn_repo::{Repo, RepoError};

use crate::args::MountArgs;
use crate::error::{CliError, Exit, io_cause};
use crate::forwarder::Stop;
use crate::repo::{Counters, Door, RepoConfig};
use crate::{logging, output};

/// How soon a signal is heeded.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `trunkline mount`.
///
/// # Errors
/// A wrong configuration, a repository in use, or why there is no mount.
pub fn run(args: &MountArgs, verbose: u8) -> Result<(), CliError> {
    let Some(path) = &args.config else {
        return Err(CliError::usage("mount", "no repository is named")
            .or("give its configuration with -c, or set TRUNKLINE_REPO"));
    };
    let config = RepoConfig::load(path)?;
    logging::start(verbose, &config.log);
    let mut options = config.mount.clone();
    if let Some(prefix) = &args.prefix {
        options.root = prefix.clone();
    }
    if let Some(versions) = args.versions {
        options.versions = Some(usize::try_from(versions).unwrap_or(usize::MAX));
    }
    options.read_only |= args.read_only;
    options.allow_other |= args.allow_other;
    let stop = Stop::on_signals()?;
    let repo = config.try_open()?.map_err(|error| {
        let told = config.error(&error);
        match error {
            RepoError::Locked(_) => told.or(format!(
                "where it runs, mount it there: trunkline repo run --config {} --mount {}",
                path.display(),
                args.directory.display()
            )),
            _ => told,
        }
    })?;
    let _door = Door::open(&config.door(), &repo, &Counters::default())?;
    let mount = start(&repo, &config.directory, &args.directory, &options)?;
    output::line(&format!(
        "{} of {} at {} until stopped",
        options.root,
        config.directory.display(),
        args.directory.display()
    ));
    while !stop.is_set() && !mount.wait(LOOK) {}
    end(mount)
}

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
    Mount::local(repo, store, at, options).map_err(|e| mount_error(&e))
}

/// Unmounts it; what was written is published and durable then.
///
/// # Errors
/// What is not.
pub fn end(mount: Mount) -> Result<(), CliError> {
    mount.unmount().map_err(|e| mount_error(&e))
}

/// What the library says, in the house's form.
fn mount_error(error: &MountError) -> CliError {
    match error {
        MountError::NoFuse => CliError::said(Exit::Failed, error),
        MountError::Folder { .. } => CliError::said(Exit::Usage, error),
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
