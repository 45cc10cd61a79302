//! `trunkline fwd route …`.

use std::collections::BTreeMap;

use ndn_forwarder::mgmt::ControlParameters;
use ndn_forwarder::{CAPTURE, CHILD_INHERIT};
use serde::Serialize;
use serde_json::json;

use super::faces;
use crate::args::{Persistency, RouteCommand};
use crate::error::CliError;
use crate::nfd::{Manager, accepted};
use crate::output::{self, Table};

/// A route as it is told.
#[derive(Serialize)]
struct RouteFacts {
    prefix: String,
    face_id: u64,
    uri: Option<String>,
    origin: u64,
    cost: u64,
    inherit: bool,
    capture: bool,
    expires_ms: Option<u64>,
}

/// Runs the subcommand.
///
/// # Errors
/// No forwarder, or one that refuses.
pub fn run(command: RouteCommand) -> Result<(), CliError> {
    match command {
        RouteCommand::List(ask) => {
            let routes = list(&Manager::new(&ask.face)?)?;
            if ask.json.json {
                output::json(&routes);
            } else {
                table(&routes).print("no routes");
            }
            Ok(())
        }
        RouteCommand::Add {
            prefix,
            nexthop,
            cost,
            origin,
            no_inherit,
            capture,
            expires,
            ask,
        } => {
            let manager = Manager::new(&ask.face)?;
            let face_id = match nexthop.parse() {
                Ok(id) => id,
                Err(_) => {
                    let wanted = faces::Wanted {
                        persistency: Persistency::Permanent,
                        mtu: None,
                        reliability: None,
                    };
                    faces::create(&manager, &nexthop, &wanted)?.face_id
                }
            };
            let flags =
                if no_inherit { 0 } else { CHILD_INHERIT } | if capture { CAPTURE } else { 0 };
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                face_id: Some(face_id),
                origin: Some(origin),
                cost: Some(cost),
                flags: Some(flags),
                expiration_ms: expires.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
                ..Default::default()
            };
            let about = format!("route {prefix} to {nexthop}");
            let done = accepted(manager.command("rib", "register", &parameters)?, &about)?;
            let facts = RouteFacts {
                prefix: prefix.to_string(),
                face_id: done.face_id.unwrap_or(face_id),
                uri: None,
                origin: done.origin.unwrap_or(origin),
                cost: done.cost.unwrap_or(cost),
                inherit: flags & CHILD_INHERIT != 0,
                capture,
                expires_ms: done.expiration_ms,
            };
            if ask.json.json {
                output::json(&facts);
            } else {
                output::line(&format!(
                    "route {prefix} leads to face {} with cost {}",
                    facts.face_id, facts.cost
                ));
            }
            Ok(())
        }
        RouteCommand::Remove {
            prefix,
            nexthop,
            origin,
            ask,
        } => {
            let manager = Manager::new(&ask.face)?;
            let face_id = faces::find(&manager, &nexthop)?;
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                face_id: Some(face_id),
                origin: Some(origin),
                ..Default::default()
            };
            let about = format!("route {prefix} to {nexthop}");
            accepted(manager.command("rib", "unregister", &parameters)?, &about)?;
            if ask.json.json {
                output::json(
                    &json!({ "prefix": prefix.to_string(), "face_id": face_id, "origin": origin, "removed": true }),
                );
            } else {
                output::line(&format!("route {prefix} no longer leads to face {face_id}"));
            }
            Ok(())
        }
    }
}

fn list(manager: &Manager) -> Result<Vec<RouteFacts>, CliError> {
    let uris: BTreeMap<u64, String> = manager
        .faces()?
        .into_iter()
        .map(|f| (f.face_id, f.uri))
        .collect();
    let mut routes = Vec::new();
    for entry in manager.rib()? {
        for route in entry.routes {
            routes.push(RouteFacts {
                prefix: entry.prefix.to_string(),
                face_id: route.face_id,
                uri: uris.get(&route.face_id).cloned(),
                origin: route.origin,
                cost: route.cost,
                inherit: route.flags & CHILD_INHERIT != 0,
                capture: route.flags & CAPTURE != 0,
                expires_ms: route.expires_ms,
            });
        }
    }
    Ok(routes)
}

fn table(routes: &[RouteFacts]) -> Table {
    let mut table = Table::new(&["prefix", "face", "remote", "cost", "origin", "flags"]);
    for r in routes {
        let flags: Vec<&str> = [(r.inherit, "inherit"), (r.capture, "capture")]
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, word)| *word)
            .collect();
        table.row(vec![
            r.prefix.clone(),
            r.face_id.to_string(),
            r.uri.clone().unwrap_or_else(|| String::from("?")),
            r.cost.to_string(),
            r.origin.to_string(),
            flags.join(","),
        ]);
    }
    table
}
