//! `trunkline mirror status`.

use trunkline_mirror::cost::Cost;
use trunkline_mirror::status::{FlowStatus, Side, Status};

use super::run::maps_error;
use crate::args::PinArgs;
use crate::error::CliError;
use crate::output::{self, Table};
use crate::units::show_size;

/// Prints what the pinned maps say.
///
/// # Errors
/// They may not be read.
pub fn status(args: &PinArgs) -> Result<(), CliError> {
    let (_, pins) = super::pins(args)?;
    let status = Status::read(&pins).map_err(|e| maps_error(&e))?;
    if args.json.json {
        output::json(&status);
        return Ok(());
    }
    output::line(lines(&status).trim_end());
    Ok(())
}

fn lines(status: &Status) -> String {
    let interfaces: Vec<_> = status
        .interfaces
        .iter()
        .map(|at| match (at.ingress, at.egress) {
            (true, true) => at.name.clone(),
            (true, false) => format!("{} (not at egress)", at.name),
            _ => format!("{} (not at ingress)", at.name),
        })
        .collect();
    let attached = match interfaces.as_slice() {
        [] => String::from("to no interface"),
        names => format!("to {}", names.join(", ")),
    };
    let agent = match (status.agent, status.off) {
        (true, false) => "runs",
        (true, true) => "runs; `trunkline mirror off` has begun",
        (false, true) => "does not run; `trunkline mirror off` has begun",
        (false, false) if status.attached => {
            "does not run: flows go on, and no new ones are mirrored"
        }
        (false, false) => "does not run",
    };
    let count = |name| status.counters.get(name).copied().unwrap_or(0);
    let bytes = |name| show_size(count(name));
    let fallbacks: Vec<_> = status
        .fallbacks
        .iter()
        .filter(|(_, flows)| **flows != 0)
        .map(|(reason, flows)| format!("{flows} {}", reason.replace('_', " ")))
        .collect();
    let fallbacks = match fallbacks.as_slice() {
        [] => String::from("none"),
        some => some.join(", "),
    };
    let mut text = format!(
        "attached   {attached}\n\
         agent      {agent}\n\
         sent       {} really, {} virtually, {} again\n\
         received   {} by copies\n\
         dropped    {} copies of unknown connections, {} stale, {} too early\n\
         fallbacks  {fallbacks}\n",
        bytes("real_bytes"),
        bytes("virtual_bytes"),
        bytes("retransmitted_bytes"),
        bytes("mirrored_bytes"),
        count("mirror_unknown"),
        count("mirror_stale"),
        count("mirror_unarmed"),
    );
    let cost = Cost::of_all(status.cost.values());
    if let Some(ns) = cost.ns_per_frame() {
        text.push_str(&format!(
            "cost       {ns} ns a frame, in {} frames\n",
            cost.frames
        ));
    }
    match status.other_release {
        Some(0) => {}
        Some(n) => text.push_str(&format!(
            "older      {n} connections are with the programs of another release\n"
        )),
        None => text.push_str("older      the maps of another release can't be read\n"),
    }
    if !status.flows.is_empty() {
        let mut table = Table::new(&[
            "side",
            "from",
            "to",
            "state",
            "virtual",
            "really",
            "copies",
            "fell back",
        ]);
        for flow in &status.flows {
            table.row(row(flow));
        }
        text.push('\n');
        text.push_str(&table.render());
    }
    text
}

fn row(flow: &FlowStatus) -> Vec<String> {
    let bytes = |name| show_size(flow.counters.get(name).copied().unwrap_or(0));
    let side = match flow.side {
        Side::Send => "send",
        Side::Receive => "receive",
    };
    let reason = match flow.reason {
        "none" => String::from("-"),
        reason => reason.replace('_', " "),
    };
    vec![
        side.to_owned(),
        flow.source.to_string(),
        flow.target.to_string(),
        flow.state.replace('_', " "),
        bytes("virtual_bytes"),
        bytes("real_bytes"),
        bytes("mirrored_bytes"),
        reason,
    ]
}
