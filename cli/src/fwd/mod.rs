//! `trunkline fwd …`: the forwarder itself, and questions and commands to one that runs.

mod config;
mod cs;
mod exposure;
mod faces;
mod routes;
mod run;
mod settings;
mod status;
mod strategies;
mod strategy;

pub use settings::SCHEMA;

use crate::args::FwdCommand;
use crate::error::CliError;
use crate::output;

/// Runs the subcommand.
///
/// # Errors
/// As each of them says.
pub fn run(command: FwdCommand, verbose: u8) -> Result<(), CliError> {
    match command {
        FwdCommand::Run { config, check } => run::run(&config, check, verbose),
        FwdCommand::Status(ask) => status::status(&ask),
        FwdCommand::Face(command) => faces::run(command),
        FwdCommand::Route(command) => routes::run(command),
        FwdCommand::Strategy(command) => strategies::run(command),
        FwdCommand::Cs(command) => cs::run(command),
        FwdCommand::Settings { markdown } => {
            let text = if markdown {
                SCHEMA.markdown("fwd")
            } else {
                SCHEMA.text()
            };
            output::line(text.trim_end());
            Ok(())
        }
    }
}
