//! `trunkline qos check`, `apply`, `show` and `clear`.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::answers::{
    Applied, InForce, Policy, Problem, QueueTotal, QueueTotals, Queues, Share, Status, Warning,
};
use super::client::{Controller, Refused, parse};
use crate::args::{ControllerArgs, PolicyFileArgs};
use crate::error::CliError;
use crate::output::{self, Table};
use crate::units::show_rate;

/// What the controller takes.
const MAX_POLICY_BYTES: u64 = 256 * 1024;

/// Queues of ports where none is in force; as many rows as one question asks for.
const WITHOUT_EFFECT: &str = "queues?mode=none&mode=unknown&limit=10000";

/// Has a policy checked.
///
/// # Errors
/// It is wrong; all that is has been printed.
pub fn check(args: &PolicyFileArgs) -> Result<(), CliError> {
    let (name, text) = read(&args.file)?;
    let controller = Controller::new(&args.controller)?;
    let json = args.controller.json.json;
    let checked = controller
        .check(&text, &name)
        .map_err(|refused| told(refused, &name, json))?;
    let policy: Policy = parse(&checked)?;
    if json {
        output::json(&json!({"file": name, "valid": true, "problems": [], "policy": checked}));
        return Ok(());
    }
    warn(&policy.warnings, &name);
    output::line(&format!(
        "{name}: policy {} is valid: {}, {}",
        policy.name,
        counted(policy.queues.len(), "queue"),
        counted(policy.rules.len(), "rule"),
    ));
    Ok(())
}

/// Has a policy put in force.
///
/// # Errors
/// It is wrong, or the controller stands by; nothing has changed.
pub fn apply(args: &PolicyFileArgs) -> Result<(), CliError> {
    let (name, text) = read(&args.file)?;
    let controller = Controller::new(&args.controller)?;
    let json = args.controller.json.json;
    let answer = controller
        .apply(&text, &name)
        .map_err(|refused| told(refused, &name, json))?;
    let applied: Applied = parse(&answer)?;
    if json {
        output::json(&answer);
    } else {
        warn(&applied.warnings, &name);
        output::line(&format!(
            "{}: in force as version {}, {} changed; see trunkline qos show for what is in force",
            applied.name,
            applied.version,
            entries(applied.flows_changed),
        ));
    }
    Ok(())
}

/// Has no policy in force.
///
/// # Errors
/// The controller can't be reached, or stands by.
pub fn clear(args: &ControllerArgs) -> Result<(), CliError> {
    let answer = Controller::new(args)?.clear()?;
    let applied: Applied = parse(&answer)?;
    if args.json.json {
        output::json(&answer);
    } else {
        output::line(&format!(
            "no policy is in force any more (version {}), {} changed",
            applied.version,
            entries(applied.flows_changed),
        ));
    }
    Ok(())
}

/// Shows the policy in force, its queues, and how they take effect.
///
/// # Errors
/// The controller can't be reached, or refuses.
pub fn show(args: &ControllerArgs) -> Result<(), CliError> {
    let controller = Controller::new(args)?;
    let status = controller.get("status")?;
    let in_force = controller.get("policy")?;
    let totals = controller.get("queues/totals")?;
    let without = controller.get(WITHOUT_EFFECT)?;
    if args.json.json {
        output::json(&json!({
            "status": status,
            "policy": in_force.get("policy"),
            "applied": in_force.get("applied"),
            "queues": totals.get("queues"),
            "without_effect": without.get("queues"),
        }));
        return Ok(());
    }
    let status: Status = parse(&status)?;
    let in_force: InForce = parse(&in_force)?;
    let totals: QueueTotals = parse(&totals)?;
    let without: Queues = parse(&without)?;
    output::line(&format!(
        "controller  {}, {}, {}, dynamic control {}",
        status.role,
        counted(status.switches, "switch"),
        if status.converged {
            "all as they should be"
        } else {
            "not all as they should be yet"
        },
        if status.dynamic { "on" } else { "off" },
    ));
    for alert in &status.alerts {
        output::line(&format!("to mend     {}; {}", alert.what, alert.remedy));
    }
    let (Some(policy), Some(applied)) = (&in_force.policy, &in_force.applied) else {
        output::line(
            "policy      none: all traffic is treated alike; trunkline qos apply FILE puts one in force",
        );
        return Ok(());
    };
    output::line(&format!(
        "policy      {}, version {}, put in force {} ago by {}",
        policy.name,
        applied.version,
        age(applied.at_s),
        applied.by,
    ));
    output::line("");
    output::line(queues(policy, &totals.queues).render().trim_end());
    output::line("");
    output::line(classes(policy).render().trim_end());
    if let Some(table) = ports_without_effect(&without) {
        output::line("");
        output::line(table.render().trim_end());
        if without.total > without.queues.len() as u64 {
            output::line("and more: not all ports are listed");
        }
    }
    if totals.queues.iter().any(|t| t.modes.contains_key("none")) {
        output::line(
            "\nno effect: packets share the port's default queue; run trunkline-controller agent at the switches' hosts",
        );
    }
    Ok(())
}

/// The queues: what belongs into each, and what becomes of it.
fn queues(policy: &Policy, totals: &[QueueTotal]) -> Table {
    let mut table = Table::new(&[
        "queue",
        "number",
        "dscp",
        "priority",
        "categories",
        "in force",
        "sends",
        "dropped",
    ]);
    for queue in &policy.queues {
        let categories: Vec<_> = policy
            .categories
            .iter()
            .filter(|(_, name)| **name == queue.name)
            .map(|(category, _)| category.as_str())
            .collect();
        let total = totals.iter().find(|t| t.queue == queue.name);
        table.row(vec![
            queue.name.clone(),
            queue.number.to_string(),
            queue.dscp.to_string(),
            queue.priority.to_string(),
            or_dash(categories.join(", ")),
            or_dash(total.map(modes).unwrap_or_default()),
            total.map_or("-".into(), |t| rate(t.bit_s)),
            total.map_or("-".into(), |t| t.dropped_packets.to_string()),
        ]);
    }
    table
}

/// What each queue has of a port, by class of ports.
fn classes(policy: &Policy) -> Table {
    let mut heading = vec!["queue"];
    heading.extend(policy.port_classes.iter().map(|c| c.name.as_str()));
    let mut table = Table::new(&heading);
    for queue in &policy.queues {
        let mut row = vec![queue.name.clone()];
        for class in &policy.port_classes {
            let share = class.shares.iter().find(|s| s.queue == queue.name);
            row.push(share.map_or("-".into(), show_share));
        }
        table.row(row);
    }
    table
}

/// Ports where queues have no effect or none is known, each with the reason; nothing where there are none.
fn ports_without_effect(found: &Queues) -> Option<Table> {
    let mut ports: Vec<_> = found
        .queues
        .iter()
        .map(|q| (q.at.name(), mode_text(&q.mode), q.why.as_str()))
        .collect();
    ports.sort_unstable();
    ports.dedup();
    if ports.is_empty() {
        return None;
    }
    let mut table = Table::new(&["port", "in force", "why"]);
    for (name, mode, why) in ports {
        table.row(vec![name, mode.to_owned(), or_dash(why.to_owned())]);
    }
    Some(table)
}

fn show_share(share: &Share) -> String {
    let least = match share.min_percent {
        Some(percent) => format!("{percent}%"),
        None => rate(share.min_bit_s as f64),
    };
    let most = match (share.max_percent, share.max_bit_s) {
        (Some(percent), _) => format!("{percent}%"),
        (None, 0) => String::from("all"),
        (None, bit_s) => rate(bit_s as f64),
    };
    if least == most {
        most
    } else {
        format!("{least} to {most}")
    }
}

/// How a queue takes effect, as the probe found it.
fn modes(total: &QueueTotal) -> String {
    let words: Vec<_> = total
        .modes
        .iter()
        .map(|(mode, ports)| format!("{} on {}", mode_text(mode), counted(*ports, "port")))
        .collect();
    words.join(", ")
}

/// A mode in words.
pub fn mode_text(mode: &str) -> &str {
    match mode {
        "dscp" => "DSCP",
        "none" => "no effect",
        "unknown" => "not known",
        other => other,
    }
}

/// A rate as people read it.
pub fn rate(bit_s: f64) -> String {
    // Truncation is meant: of a byte a second.
    show_rate((bit_s.max(0.0) / 8.0) as u64, Duration::from_secs(1))
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".into() } else { text }
}

/// "1 port", "2 ports".
fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = match (number, what.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {what}{ending}")
}

fn entries(number: u64) -> String {
    format!(
        "{number} flow {}",
        if number == 1 { "entry" } else { "entries" }
    )
}

/// The time since then, in its largest unit.
fn age(at_s: f64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = (now.as_secs_f64() - at_s).max(0.0) as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn warn(warnings: &[Warning], name: &str) {
    for warning in warnings {
        eprintln!(
            "{name}:{}: warning: {}; {}",
            warning.line, warning.what, warning.remedy
        );
    }
}

/// Prints all that is wrong with a policy, one line each, and says in short that it is.
fn told(refused: Refused, name: &str, json: bool) -> CliError {
    let problem = match refused {
        Refused::Other(error) => return error,
        Refused::Policy(problem) => problem,
    };
    if json {
        output::json(&json!({"file": name, "valid": false, "problems": listed(&problem)}));
    } else {
        for each in &problem.problems {
            eprintln!(
                "{}:{}: {}; {}",
                each.file, each.line, each.what, each.remedy
            );
        }
    }
    CliError::failed(
        name,
        format!("refused for {}", counted(problem.problems.len(), "problem")),
    )
    .or("mend each; nothing was changed")
}

fn listed(problem: &Problem) -> Vec<Value> {
    problem
        .problems
        .iter()
        .map(|p| json!({"file": p.file, "line": p.line, "what": p.what, "remedy": p.remedy}))
        .collect()
}

/// A policy file's name for messages, and its text.
fn read(path: &Path) -> Result<(String, String), CliError> {
    let mut bytes = Vec::new();
    let limit = MAX_POLICY_BYTES + 1;
    let (name, done) = if path == Path::new("-") {
        let done = std::io::stdin().lock().take(limit).read_to_end(&mut bytes);
        (String::from("standard input"), done)
    } else {
        let done = std::fs::File::open(path).and_then(|f| f.take(limit).read_to_end(&mut bytes));
        (path.display().to_string(), done)
    };
    done.map_err(|e| CliError::file(Path::new(&name), &e))?;
    if bytes.len() as u64 > MAX_POLICY_BYTES {
        return Err(
            CliError::usage(&name, format!("is longer than {MAX_POLICY_BYTES} bytes"))
                .or("a policy is a short file: is it the right one?"),
        );
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::usage(&name, "is not UTF-8").or("save it as UTF-8"))?;
    Ok((name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_well() {
        assert_eq!(counted(1_u64, "switch"), "1 switch");
        assert_eq!(counted(2_u64, "switch"), "2 switches");
        assert_eq!(counted(0_usize, "rule"), "0 rules");
        assert_eq!(entries(1), "1 flow entry");
    }

    #[test]
    fn shares_are_rates_or_parts() {
        let share = |min_bit_s, max_bit_s, min_percent, max_percent| {
            show_share(&Share {
                queue: String::new(),
                min_bit_s,
                max_bit_s,
                min_percent,
                max_percent,
            })
        };
        assert_eq!(
            share(50_000_000, 300_000_000, None, None),
            "50.0 Mbit/s to 300.0 Mbit/s"
        );
        assert_eq!(share(5_000_000, 5_000_000, None, None), "5.0 Mbit/s");
        assert_eq!(share(0, 0, Some(20.0), None), "20% to all");
        assert_eq!(share(0, 0, Some(12.5), Some(80.0)), "12.5% to 80%");
    }
}
