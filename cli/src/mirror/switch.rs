//! `trunkline mirror switch …`: a Linux bridge that mirrors.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use trunkline_mirror::pins::Pins;
use trunkline_mirror::switch::off::{OffError, off as take_off};
use trunkline_mirror::switch::{
    CopyStatus, DEFAULT_PIN, EntryStatus, StatusError, SwitchAgent, SwitchStatus, pins as pins_at,
};

use super::config::SwitchConfig;
use super::run::maps_error;
use crate::args::{SwitchCommand, SwitchOffArgs, SwitchPinArgs};
use crate::error::{CliError, Exit};
use crate::forwarder::Stop;
use crate::logging;
use crate::output::{self, Table, line};
use crate::units::show_size;

/// How often it is looked whether the agent still runs.
const WATCH: Duration = Duration::from_millis(500);

/// Runs the subcommand.
///
/// # Errors
/// As each of them says.
pub fn run(command: &SwitchCommand, verbose: u8) -> Result<(), CliError> {
    match command {
        SwitchCommand::Run { config, check } => agent(config, *check, verbose),
        SwitchCommand::Status(args) => status(args),
        SwitchCommand::Off(args) => off(args),
    }
}

/// The agent in the foreground until a signal ends it, or only its configuration checked.
fn agent(path: &Path, check: bool, verbose: u8) -> Result<(), CliError> {
    let config = SwitchConfig::load(path)?.with_secrets()?;
    if check {
        line(&format!("{}: configuration is valid", path.display()));
        return Ok(());
    }
    logging::start(verbose, &config.log);
    if config.is_token_in_clear() {
        tracing::warn!(
            "the token goes to {} unencrypted; have the controller speak TLS",
            config.switch.controller.url
        );
    }
    let stop = Stop::on_signals()?;
    let (name, bridge) = (config.switch.name.clone(), config.switch.bridge.clone());
    let agent = SwitchAgent::start(config.switch).map_err(|e| CliError::said(Exit::Failed, &e))?;
    line(&format!(
        "attached to the ports of {bridge}; bridge {name} until stopped"
    ));
    while agent.is_running() {
        let stopped = stop.wait(WATCH);
        if stopped {
            tracing::info!("signal received: shutting down; the program stays attached");
        }
        if stopped || agent.is_off() {
            agent.stop();
            return Ok(());
        }
    }
    Err(CliError::failed("agent", "its thread has ended by itself").or("see its log"))
}

fn pins(args: &SwitchPinArgs) -> Result<Pins, CliError> {
    let config = match &args.config {
        Some(path) => Some(SwitchConfig::load(path)?),
        None => None,
    };
    let folder = match (&args.pin, config) {
        (Some(folder), _) => folder.clone(),
        (None, Some(config)) => config.switch.pin,
        (None, None) => DEFAULT_PIN.into(),
    };
    Ok(pins_at(&folder))
}

fn status(args: &SwitchPinArgs) -> Result<(), CliError> {
    let status = SwitchStatus::read(&pins(args)?).map_err(|error| match &error {
        StatusError::Maps(error) => maps_error(error),
        error => CliError::said(Exit::Failed, error),
    })?;
    if args.json.json {
        output::json(&status);
    } else {
        line(lines(&status).trim_end());
    }
    Ok(())
}

fn off(args: &SwitchOffArgs) -> Result<(), CliError> {
    let removed = take_off(&pins(&args.pins)?, args.wait).map_err(|error| match &error {
        OffError::Agent => CliError::said(Exit::Failed, &format!("bridge: {error}")),
        OffError::Maps(error) => maps_error(error),
        error => CliError::said(Exit::Failed, error),
    })?;
    if args.pins.json.json {
        output::json(&json!({"ports": removed.ports, "pins": removed.pins}));
        return Ok(());
    }
    let from = match removed.ports.as_slice() {
        [] => String::from("the program was at no port"),
        names => format!("program taken off {}", names.join(", ")),
    };
    let pins = if removed.pins {
        "pins removed"
    } else {
        "there were no pins"
    };
    line(&format!("{from}; {pins}"));
    Ok(())
}

fn lines(status: &SwitchStatus) -> String {
    let ports: Vec<_> = status
        .ports
        .iter()
        .map(|port| match port.link {
            true => format!("{} (another switch)", port.name),
            false => port.name.clone(),
        })
        .collect();
    let attached = match ports.as_slice() {
        [] => String::from("to no port"),
        names => format!("to {}", names.join(", ")),
    };
    let agent = match (status.agent, status.off) {
        (true, false) => "runs",
        (true, true) => "runs; `trunkline mirror switch off` has begun",
        (false, true) => "does not run; `trunkline mirror switch off` has begun",
        (false, false) if status.attached => {
            "does not run: copies are made as before, and nothing new is copied"
        }
        (false, false) => "does not run",
    };
    let count = |name| status.counters.get(name).copied().unwrap_or(0);
    let without = match status.without_program.as_slice() {
        [] => String::new(),
        names => format!(
            "without    {}: nothing is mirrored there; the agent's log says why\n",
            names.join(", ")
        ),
    };
    let mut text = format!(
        "attached   {attached}\n\
         {without}\
         agent      {agent}\n\
         copied     {} in {} copies, {} that a port did not take\n\
         dropped    {} marked frames of no entry, {} from ports that lead to no other switch\n",
        show_size(count("copied_bytes")),
        count("copied"),
        count("lost"),
        count("unknown"),
        count("forged"),
    );
    if !status.entries.is_empty() {
        let mut table = Table::new(&["from", "to", "by", "copies", "copied", "lost"]);
        for entry in &status.entries {
            table.row(row(entry));
        }
        text.push('\n');
        text.push_str(&table.render());
    }
    text
}

fn row(entry: &EntryStatus) -> Vec<String> {
    let copy = |copy: &CopyStatus| match copy.destination {
        None => format!("{} (in transit)", copy.port),
        Some(to) => format!("{} {} ({})", copy.port, to.ip(), copy.position),
    };
    let by = match entry.marked {
        true => format!("{} (in transit)", entry.port),
        false => entry.port.clone(),
    };
    let copies: Vec<_> = entry.copies.iter().map(copy).collect();
    vec![
        entry.source.to_string(),
        entry.destination.to_string(),
        by,
        copies.join(", "),
        show_size(entry.copied_bytes),
        entry.lost.to_string(),
    ]
}
