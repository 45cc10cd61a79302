//! `trunkline fwd strategy …`.

use ndn_forwarder::mgmt::ControlParameters;
use ndn_packet::Name;
use serde_json::json;

use super::strategy;
use crate::args::StrategyCommand;
use crate::error::CliError;
use crate::nfd::{Manager, accepted};
use crate::output::{self, Table};

/// Runs the subcommand.
///
/// # Errors
/// No forwarder, or one that refuses.
pub fn run(command: StrategyCommand) -> Result<(), CliError> {
    match command {
        StrategyCommand::List(ask) => {
            let choices = Manager::new(&ask.face)?.strategies()?;
            if ask.json.json {
                let facts: Vec<_> = choices
                    .iter()
                    .map(|c| json!({ "prefix": c.prefix.to_string(), "strategy": c.strategy.to_string() }))
                    .collect();
                output::json(&facts);
            } else {
                let mut table = Table::new(&["prefix", "strategy"]);
                for c in choices {
                    table.row(vec![c.prefix.to_string(), c.strategy.to_string()]);
                }
                table.print("no strategies");
            }
            Ok(())
        }
        StrategyCommand::Set {
            prefix,
            strategy,
            ask,
        } => {
            let name = strategy::full_name(&strategy)
                .map_err(|e| CliError::usage(&strategy, e).or(strategy::HINT))?;
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                strategy: Some(name),
                ..Default::default()
            };
            let about = format!("strategy {strategy} for {prefix}");
            let done = accepted(
                Manager::new(&ask.face)?.command("strategy-choice", "set", &parameters)?,
                &about,
            )?;
            tell(
                ask.json.json,
                &prefix,
                done.strategy.map(|s| s.to_string()).or(Some(strategy)),
            )
        }
        StrategyCommand::Unset { prefix, ask } => {
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                ..Default::default()
            };
            let about = format!("strategy for {prefix}");
            accepted(
                Manager::new(&ask.face)?.command("strategy-choice", "unset", &parameters)?,
                &about,
            )?;
            tell(ask.json.json, &prefix, None)
        }
    }
}

fn tell(as_json: bool, prefix: &Name, strategy: Option<String>) -> Result<(), CliError> {
    if as_json {
        output::json(&json!({ "prefix": prefix.to_string(), "strategy": strategy }));
    } else {
        output::line(&match strategy {
            Some(strategy) => format!("{prefix} is forwarded by {strategy}"),
            None => format!("{prefix} is forwarded as the next shorter prefix"),
        });
    }
    Ok(())
}
