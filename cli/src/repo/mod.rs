//! `trunkline repo …`: a repository on this host, running or not, and files fetched from any.

mod config;
mod control;
mod get;
mod http;
mod listing;
mod local;
mod put;
mod remote;
mod run;
mod session;
mod settings;
mod sources;
mod store;
mod trust;

pub use config::RepoConfig;
pub use control::ControlSocket;
pub use session::Counters;
pub use settings::SCHEMA;

use ndn_packet::Name;
use ndn_repo::RepoError;

use crate::args::RepoCommand;
use crate::error::{CliError, Exit, io_cause};
use crate::output;

/// Why a transfer ended that a signal or a lost peer has stopped.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct Stopped;

impl Stopped {
    /// As what a progress callback fails with.
    fn error() -> std::io::Error {
        std::io::Error::other(Stopped)
    }

    /// Whether it is why `error` came about.
    fn is_cause_of(error: &std::io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
    }
}

/// Runs the subcommand.
///
/// # Errors
/// As each of them says.
pub fn run(command: RepoCommand, verbose: u8) -> Result<(), CliError> {
    match command {
        RepoCommand::Run {
            config,
            http,
            mount,
            store,
            check,
        } => run::run(&config, http, mount.as_deref(), store, check, verbose),
        RepoCommand::Put(args) => put::put(&args),
        RepoCommand::Get(args) => get::get(&args),
        RepoCommand::Ls(args) => local::ls(&args),
        RepoCommand::Rm(args) => local::rm(&args),
        RepoCommand::Status(args) => local::status(&args),
        RepoCommand::Verify(args) => local::verify(&args),
        RepoCommand::Compact(args) => local::compact(&args),
        RepoCommand::Settings { markdown } => {
            let text = if markdown {
                SCHEMA.markdown("repo")
            } else {
                SCHEMA.text()
            };
            output::line(text.trim_end());
            Ok(())
        }
    }
}

/// What the library says, with the exit status.
fn repo_error(error: &RepoError) -> CliError {
    let exit = match error {
        RepoError::Shared(error) => return repo_error(error),
        RepoError::BadName { .. } | RepoError::Setting(_) => Exit::Usage,
        RepoError::Damaged { .. } => Exit::Unverified,
        RepoError::NotFound(_) => Exit::NoData,
        _ => Exit::Failed,
    };
    CliError::said(exit, error)
}

/// Why a file did not come in.
fn put_error(name: &Name, error: &std::io::Error) -> CliError {
    if Stopped::is_cause_of(error) {
        return CliError::new(
            Exit::Interrupted,
            name.to_string(),
            "interrupted before it was complete",
        )
        .or("what was received is kept: run the same command to resume");
    }
    let failed = CliError::failed(name.to_string(), io_cause(error));
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            failed.or("free some space, or run trunkline repo compact")
        }
        _ => failed,
    }
}
