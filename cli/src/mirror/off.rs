//! `trunkline mirror off`.

use serde_json::json;
use trunkline_mirror::off::{OffError, OffOptions, off as take_off};

use super::run::maps_error;
use crate::args::OffArgs;
use crate::error::{CliError, Exit};
use crate::output;

/// Takes the programs off this host.
///
/// # Errors
/// Connections can't do without them in time, or the system refuses.
pub fn off(args: &OffArgs) -> Result<(), CliError> {
    let (_, pins) = super::pins(&args.pins)?;
    let options = OffOptions {
        wait: args.wait,
        force: args.force,
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
