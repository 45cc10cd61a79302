//! `trunkline mirror …`: mirrored replication at a DataNode's host, and at a Linux bridge.

mod config;
mod doctor;
mod off;
mod run;
mod settings;
mod status;
mod switch;

use trunkline_mirror::pins::{DEFAULT, Pins};

pub use settings::SCHEMA;

use crate::args::{MirrorCommand, PinArgs};
use crate::error::CliError;
use crate::output;
use config::MirrorConfig;

/// Runs the subcommand.
///
/// # Errors
/// As each of them says.
pub fn run(command: &MirrorCommand, verbose: u8) -> Result<(), CliError> {
    match command {
        MirrorCommand::Run {
            config,
            replace,
            check,
        } => run::run(config, *replace, *check, verbose),
        MirrorCommand::Status(args) => status::status(args),
        MirrorCommand::Off(args) => off::off(args),
        MirrorCommand::Doctor(args) => doctor::doctor(args),
        MirrorCommand::Switch(command) => switch::run(command, verbose),
        MirrorCommand::Settings { markdown } => {
            let text = if *markdown {
                SCHEMA.markdown("mirror")
            } else {
                SCHEMA.text()
            };
            output::line(text.trim_end());
            Ok(())
        }
    }
}

/// The configuration, where one is named, and the pins.
fn pins(args: &PinArgs) -> Result<(Option<MirrorConfig>, Pins), CliError> {
    let config = match &args.config {
        Some(path) => Some(MirrorConfig::load(path)?),
        None => None,
    };
    let folder = match (&args.pin, &config) {
        (Some(folder), _) => folder.clone(),
        (None, Some(config)) => config.agent.pin.clone(),
        (None, None) => DEFAULT.into(),
    };
    Ok((config, Pins::at(&folder)))
}
