//! `trunkline fwd run`: a forwarder in the foreground until a signal ends it.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use ndn_io::Node;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::config;
use crate::error::CliError;
use crate::{logging, output};

/// How often the loop is looked after.
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
    // Signals are caught before sockets are made, so that none can be left behind.
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|e| CliError::failed("signals", e))?;
    let handle = signals.handle();
    let (caught, wait) = channel();
    let watcher = std::thread::Builder::new()
        .name(String::from("signals"))
        .spawn(move || {
            for signal in signals.forever() {
                if caught.send(signal).is_err() {
                    return;
                }
            }
        })
        .map_err(|e| CliError::failed("signals", e))?;

    let node =
        Node::start(config.node).map_err(|e| CliError::failed(path.display().to_string(), e))?;
    let ended = loop {
        match wait.recv_timeout(WATCH) {
            Ok(signal) => {
                tracing::info!(signal, "shutting down");
                break Ok(());
            }
            Err(RecvTimeoutError::Timeout) if node.is_running() => {}
            Err(_) => {
                break Err(
                    CliError::failed("forwarder", "its loop has ended by itself").or("see its log"),
                );
            }
        }
    };
    node.shutdown();
    handle.close();
    if watcher.join().is_err() {
        tracing::error!("the thread that waits for signals panicked");
    }
    ended
}
