//! `trunkline qos top`.

use std::io::IsTerminal;

use serde_json::{Value, json};

use super::answers::{Link, Links, Load, Queues};
use super::client::{Controller, parse};
use super::policy::{mode_text, rate};
use crate::args::TopArgs;
use crate::error::{CliError, Exit};
use crate::forwarder::Stop;
use crate::output::{self, Table};

/// Cursor to the upper left corner, and the rest of the screen cleared.
const HOME: &str = "\x1b[H\x1b[J";

/// Prints the busiest links and queues, again and again: in place on a terminal, one below the other elsewhere.
///
/// # Errors
/// The controller can't be reached at first, or refuses. Once it was, one that is away is waited for.
pub fn top(args: &TopArgs) -> Result<(), CliError> {
    let controller = Controller::new(&args.controller)?;
    let stop = Stop::on_signals()?;
    let in_place = !args.once && !args.controller.json.json && std::io::stdout().is_terminal();
    let mut has_begun = false;
    loop {
        match look(&controller, args) {
            Ok(facts) if args.controller.json.json => output::json_line(&facts),
            Ok(facts) => {
                let text = render(&facts, args)?;
                let text = text.trim_end();
                if in_place {
                    output::line(&format!("{HOME}{text}"));
                } else {
                    output::line(&format!("{text}\n"));
                }
            }
            Err(error) if has_begun && !args.once && error.exit == Exit::NoForwarder => {
                eprintln!("trunkline: {error}");
            }
            Err(error) => return Err(error),
        }
        has_begun = true;
        if args.once || stop.wait(args.interval) {
            return Ok(());
        }
    }
}

fn look(controller: &Controller, args: &TopArgs) -> Result<Value, CliError> {
    let links = controller.get("links")?;
    let queues = controller.get(&format!("queues?limit={}", args.rows))?;
    Ok(json!({"links": links.get("links"), "queues": queues.get("queues")}))
}

fn render(facts: &Value, args: &TopArgs) -> Result<String, CliError> {
    let rows = usize::from(args.rows);
    let links: Links = parse(facts)?;
    let queues: Queues = parse(facts)?;
    let links = links_table(&links.links, rows)
        .unwrap_or_else(|| String::from("no link is known yet: are switches connected?\n"));
    let queues =
        queues_table(&queues).unwrap_or_else(|| String::from("no queues: no policy is in force\n"));
    Ok(format!("{links}\n{queues}"))
}

/// One direction of a link.
struct Direction<'a> {
    from: String,
    to: String,
    load: &'a Load,
}

fn directions(link: &Link) -> impl Iterator<Item = Direction<'_>> {
    let here = link.a.name();
    let there = match &link.b {
        Some(end) => end.name(),
        None if link.addresses.len() > 1 => format!("{} hosts", link.addresses.len()),
        None => link.addresses.first().cloned().unwrap_or_default(),
    };
    let forth = link.from_a.as_ref().map(|load| Direction {
        from: here.clone(),
        to: there.clone(),
        load,
    });
    let back = link.to_a.as_ref().map(|load| Direction {
        from: there,
        to: here,
        load,
    });
    forth.into_iter().chain(back)
}

fn links_table(links: &[Link], rows: usize) -> Option<String> {
    let mut all: Vec<_> = links.iter().flat_map(directions).collect();
    if all.is_empty() {
        return None;
    }
    all.sort_by(|a, b| b.load.bit_s.total_cmp(&a.load.bit_s));
    let mut table = Table::new(&["from", "to", "carries", "of its rate", "dropped"]);
    for each in all.into_iter().take(rows) {
        table.row(vec![
            each.from,
            each.to,
            rate(each.load.bit_s),
            each.load
                .share
                .map_or("-".into(), |share| format!("{:.0}%", share * 100.0)),
            each.load
                .dropped_packets
                .map_or("-".into(), |n| n.to_string()),
        ]);
    }
    Some(table.render())
}

fn queues_table(queues: &Queues) -> Option<String> {
    if queues.queues.is_empty() {
        return None;
    }
    let mut table = Table::new(&[
        "port", "queue", "sends", "promised", "may take", "in force", "dropped",
    ]);
    for queue in &queues.queues {
        table.row(vec![
            queue.at.name(),
            queue.queue.clone(),
            rate(queue.bit_s),
            rate(queue.min_bit_s as f64),
            rate(queue.max_bit_s as f64),
            mode_text(&queue.mode).to_owned(),
            queue.dropped_packets.to_string(),
        ]);
    }
    Some(table.render())
}
