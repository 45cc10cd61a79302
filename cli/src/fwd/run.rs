//! `trunkline fwd run`: a forwarder in the foreground until a signal ends it.

use std::path::Path;
use std::time::Duration;

use ndn_io::Node;

use super::{config, exposure};
use crate::error::CliError;
use crate::forwarder::Stop;
use crate::{logging, output};

/// How often it is looked whether the loop still runs.
const WATCH: Duration = Duration::from_millis(500);

/// Runs the forwarder, or only checks its configuration.
///
/// # Errors
/// A wrong configuration, a listener that can't be opened, or a loop that ended by itself.
pub fn run(path: &Path, check: bool, verbose: u8) -> Result<(), CliError> {
    let config = config::load(path)?;
    if check {
        output::line(&format!("{}: configuration is valid", path.display()));
        return Ok(());
    }
    logging::start(verbose, &config.log);
    if let Some(warning) = exposure::warning(&config.node) {
        tracing::warn!("{warning}");
    }
    // Signals are caught before sockets are made, so that none can be left behind.
    let stop = Stop::on_signals()?;
    let node =
        Node::start(config.node).map_err(|e| CliError::failed(path.display().to_string(), e))?;
    while node.is_running() {
        if stop.wait(WATCH) {
            tracing::info!("signal received: shutting down");
            node.shutdown();
            return Ok(());
        }
    }
    Err(CliError::failed("forwarder", "its loop has ended by itself").or("see its log"))
}
