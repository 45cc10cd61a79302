//! `trunkline mirror run`: the agent in the foreground until a signal ends it.

use std::path::Path;
use std::time::Duration;

use trunkline_mirror::{AgentError, Loaded, MapsError};

use super::config::MirrorConfig;
use crate::error::{CliError, Exit};
use crate::forwarder::Stop;
use crate::{logging, output};

/// How often it is looked whether the agent still runs.
const WATCH: Duration = Duration::from_millis(500);

/// Runs the agent, or only checks its configuration.
///
/// # Errors
/// A wrong configuration, another agent with the same pins, or a kernel that refuses.
pub fn run(path: &Path, replace: bool, check: bool, verbose: u8) -> Result<(), CliError> {
    let config = MirrorConfig::load(path)?.with_secrets()?;
    if check {
        output::line(&format!("{}: configuration is valid", path.display()));
        return Ok(());
    }
    logging::start(verbose, &config.log);
    if config.is_token_in_clear() {
        tracing::warn!(
            "the token goes to {} unencrypted; have the controller speak TLS",
            config.agent.controller.url
        );
    }
    let stop = Stop::on_signals()?;
    let (name, interfaces) = (
        config.agent.name.clone(),
        config.agent.interfaces.join(", "),
    );
    let loaded = Loaded::new(config.agent).map_err(|e| error(&e))?;
    let agent = loaded.start(replace).map_err(|e| error(&e))?;
    output::line(&format!(
        "attached to {interfaces}; agent {name} until stopped"
    ));
    while agent.is_running() {
        let stopped = stop.wait(WATCH);
        if stopped {
            tracing::info!("signal received: shutting down; the programs stay attached");
        }
        if stopped || agent.is_to_end() {
            agent.stop();
            return Ok(());
        }
    }
    Err(CliError::failed("agent", "its thread has ended by itself").or("see its log"))
}

/// What the library says, in the house's form.
fn error(error: &AgentError) -> CliError {
    CliError::said(Exit::Failed, error)
}

/// The same of maps that can't be opened.
pub fn maps_error(error: &MapsError) -> CliError {
    let failed = CliError::failed("mirrored replication", error);
    match error.raw_os_error() {
        Some(1 | 13) => failed.or("run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"),
        _ => failed.or("are the agent and this command of one release?"),
    }
}
