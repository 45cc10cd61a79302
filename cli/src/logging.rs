//! What goes to standard error beside errors: the log.

use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Starts the log with a filter such as `info,ndn_io=debug`. `TRUNKLINE_LOG` goes before it, and
/// `-v` on the command line before both.
pub fn start(verbose: u8, filter: &str) {
    let said = std::env::var("TRUNKLINE_LOG").ok();
    let filter = match verbose {
        0 => said.as_deref().unwrap_or(filter),
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let targets: Targets = filter.parse().unwrap_or_else(|error| {
        eprintln!("trunkline: log filter `{filter}`: {error}; using info");
        Targets::new().with_default(tracing::Level::INFO)
    });
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Fails only where a log was started before, and then that one stays.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(targets)
        .try_init();
}
