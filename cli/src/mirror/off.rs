//! `trunkline mirror off`.

use serde_json::json;
use trunkline_mirror::controller::Place;
use trunkline_mirror::off::{OffError, OffOptions, off as take_off};
use trunkline_mirror::pins::Pins;

use super::config::MirrorConfig;
use super::run::maps_error;
use crate::args::OffArgs;
use crate::error::{CliError, Exit};
use crate::output;

/// Takes the programs off this host.
///
/// # Errors
/// Connections can't do without them in time, or the system refuses.
pub fn off(args: &OffArgs) -> Result<(), CliError> {
    let (config, pins) = super::pins(&args.pins)?;
    let controller = match config {
        Some(config) => named_controller(Ok(config)),
        None => known_controller(&pins),
    };
    let options = OffOptions {
        wait: args.wait,
        force: args.force,
        controller,
    };
    let removed = take_off(&pins, &options).map_err(|error| match &error {
        OffError::InTheWay(_) => {
            CliError::said(Exit::Failed, &format!("mirrored replication: {error}"))
        }
        OffError::Maps(error) => maps_error(error),
        error => CliError::said(Exit::Failed, error),
    })?;
    if args.pins.json.json {
        output::json(&json!({
            "interfaces": removed.interfaces,
            "pins": removed.pins,
            "forced": removed.forced.is_some(),
        }));
        return Ok(());
    }
    let from = match removed.interfaces.as_slice() {
        [] => String::from("programs were at no interface"),
        names => format!("programs taken off {}", names.join(", ")),
    };
    let pins = if removed.pins {
        "pins removed"
    } else {
        "there were no pins"
    };
    output::line(&format!("{from}; {pins}"));
    Ok(())
}

/// The controller of the agent that was here last, by the configuration that it has written down; or why that is not
/// known.
fn known_controller(pins: &Pins) -> Result<Place, String> {
    let config = pins
        .standing::<trunkline_mirror::Standing>()
        .and_then(|standing| standing.config);
    let path =
        config.ok_or("its address is not known; name the agent's configuration with --config")?;
    if !path.exists() {
        return Err(format!(
            "{}: the agent's configuration is not there any more; name another with --config",
            path.display()
        ));
    }
    named_controller(MirrorConfig::load(&path))
}

/// The controller that a configuration names. Without it the programs are taken off all the same, later.
fn named_controller(config: Result<MirrorConfig, CliError>) -> Result<Place, String> {
    let config = config.and_then(MirrorConfig::with_secrets);
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.agent.controller)
}
