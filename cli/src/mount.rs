//! `trunkline mount`: named data as files, until a signal or somebody else unmounts it.

use std::time::Duration;

use ndn_mount::{Mount, RemoteOptions};
use ndn_packet::Name;
use ndn_repo::RepoError;

use crate::args::MountArgs;
use crate::error::CliError;
use crate::forwarder::{Stop, Target};
use crate::fuse;
use crate::repo::{ControlSocket, Counters, RepoConfig};
use crate::{logging, output};

/// Least bytes of segments that may be kept: some calls at once, of all that the system asks for in one.
const LEAST_CACHE: u64 = 1 << 20;

/// Runs `trunkline mount`.
///
/// # Errors
/// A wrong configuration, a repository in use, or why there is no mount.
pub fn run(args: &MountArgs, verbose: u8) -> Result<(), CliError> {
    if let Some(prefix) = &args.remote {
        return remote(args, prefix, verbose);
    }
    let Some(path) = &args.config else {
        return Err(CliError::usage("mount", "no repository is named").or(
            "give its configuration with -c, or set TRUNKLINE_REPO; or name one elsewhere with --remote",
        ));
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
    let _control = ControlSocket::open(&config.control_socket(), &repo, &Counters::default())?;
    let mount = fuse::start(&repo, &config.directory, &args.directory, &options)?;
    output::line(&format!(
        "{} of {} at {} until stopped",
        options.root,
        config.directory.display(),
        args.directory.display()
    ));
    until_stopped(mount, &stop)
}

/// Mounts what is under a name of a repository elsewhere.
fn remote(args: &MountArgs, prefix: &Name, verbose: u8) -> Result<(), CliError> {
    logging::start(verbose, "warn");
    let network = &args.network;
    if network.cache < LEAST_CACHE {
        return Err(CliError::usage("--cache", "is too small").or("give at least 1MiB"));
    }
    let target = Target::find(&network.face)?;
    let options = RemoteOptions {
        link: target.link,
        verify: network.verify.load()?,
        timeout: network.timeout,
        cache_bytes: usize::try_from(network.cache).unwrap_or(usize::MAX),
        remember: network.remember,
        allow_other: args.allow_other,
        ..RemoteOptions::new(prefix.clone(), target.uri)
    };
    let stop = Stop::on_signals()?;
    fuse::take_small_pages();
    let mount = Mount::remote(&args.directory, options).map_err(|e| fuse::mount_error(&e))?;
    output::line(&format!(
        "{prefix} at {} until stopped",
        args.directory.display()
    ));
    until_stopped(mount, &stop)
}

fn until_stopped(mount: Mount, stop: &Stop) -> Result<(), CliError> {
    mount.on_end(stop.waker()?);
    stop.wait_or(|| mount.wait(Duration::ZERO));
    fuse::end(mount)
}
