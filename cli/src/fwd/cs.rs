//! `trunkline fwd cs …`.

use ndn_forwarder::mgmt::{ControlParameters, CsInfo};
use serde_json::{Value, json};

use crate::args::{CsCommand, Switch};
use crate::error::CliError;
use crate::nfd::{Manager, accepted};
use crate::output;
use crate::units::show_size;

/// Flags of the content store.
const ADMIT: u64 = 1;
const SERVE: u64 = 2;

/// Runs the subcommand.
///
/// # Errors
/// No forwarder, or one that refuses.
pub fn run(command: CsCommand) -> Result<(), CliError> {
    match command {
        CsCommand::Info(ask) => {
            let info = Manager::new(&ask.face)?.cs_info()?;
            if ask.json.json {
                output::json(&facts(&info));
            } else {
                output::line(&lines(&info));
            }
            Ok(())
        }
        CsCommand::Config {
            capacity,
            admit,
            serve,
            ask,
        } => {
            if capacity.is_none() && admit.is_none() && serve.is_none() {
                return Err(CliError::usage("cs config", "nothing to change")
                    .or("give --capacity, --admit or --serve"));
            }
            let bit =
                |switch: Option<Switch>, bit: u64| if switch == Some(Switch::On) { bit } else { 0 };
            let mask = admit.map_or(0, |_| ADMIT) | serve.map_or(0, |_| SERVE);
            let parameters = ControlParameters {
                capacity,
                flags: (mask != 0).then_some(bit(admit, ADMIT) | bit(serve, SERVE)),
                mask: (mask != 0).then_some(mask),
                ..Default::default()
            };
            let done = accepted(
                Manager::new(&ask.face)?.command("cs", "config", &parameters)?,
                "content store",
            )?;
            let flags = done.flags.unwrap_or(0);
            let (admit, serve) = (flags & ADMIT != 0, flags & SERVE != 0);
            if ask.json.json {
                output::json(&json!({ "capacity": done.capacity, "admit": admit, "serve": serve }));
            } else {
                output::line("content store changed");
            }
            Ok(())
        }
        CsCommand::Erase { prefix, limit, ask } => {
            let erased = erase(&Manager::new(&ask.face)?, &prefix, limit)?;
            if ask.json.json {
                output::json(&json!({ "prefix": prefix.to_string(), "erased": erased }));
            } else {
                output::line(&format!("{erased} packets erased under {prefix}"));
            }
            Ok(())
        }
    }
}

/// The content store for programs.
pub fn facts(info: &CsInfo) -> Value {
    json!({
        "capacity": info.capacity,
        "bytes": info.bytes,
        "entries": info.entries,
        "hits": info.hits,
        "misses": info.misses,
        "admit": info.flags & ADMIT != 0,
        "serve": info.flags & SERVE != 0,
    })
}

/// The content store for people.
fn lines(info: &CsInfo) -> String {
    let word = |bit| if info.flags & bit != 0 { "yes" } else { "no" };
    // Who tells the bytes in use counts capacity in bytes too; NFD counts packets.
    let (capacity, used) = match info.bytes {
        Some(bytes) => (
            show_size(info.capacity),
            format!("{} packets, {}", info.entries, show_size(bytes)),
        ),
        None => (
            format!("{} packets", info.capacity),
            format!("{} packets", info.entries),
        ),
    };
    format!(
        "capacity         {capacity}\nin use           {used}\nkeeps Data       {}\nanswers          {}\nhits             {}\nmisses           {}",
        word(ADMIT),
        word(SERVE),
        info.hits,
        info.misses,
    )
}

/// Erases up to `limit` packets. A forwarder that stops earlier says so by telling how many one
/// command may erase, and is asked again.
fn erase(
    manager: &Manager,
    prefix: &ndn_packet::Name,
    limit: Option<u64>,
) -> Result<u64, CliError> {
    let mut erased = 0;
    loop {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            count: limit.map(|l| l - erased),
            ..Default::default()
        };
        let about = format!("content store under {prefix}");
        let done = accepted(manager.command("cs", "erase", &parameters)?, &about)?;
        let count = done.count.unwrap_or(0);
        erased += count;
        if count == 0 || done.capacity.is_none() || limit.is_some_and(|l| erased >= l) {
            return Ok(erased);
        }
    }
}
