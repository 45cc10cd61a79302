//! `trunkline fwd status`.

use std::time::Duration;

use ndn_forwarder::mgmt::{CsInfo, GeneralStatus, PacketCounters};
use serde_json::{Map, Value, json};

use super::cs;
use crate::args::AskArgs;
use crate::error::CliError;
use crate::nfd::Manager;
use crate::output;
use crate::units::show_duration;

/// Asks for the general status and the content store's.
///
/// # Errors
/// No forwarder, or none that answers.
pub fn status(ask: &AskArgs) -> Result<(), CliError> {
    let manager = Manager::new(&ask.face)?;
    let general = manager.general_status()?;
    let store = manager.cs_info()?;
    if ask.json.json {
        output::json(&facts(&general, &store));
    } else {
        output::line(&lines(&general, &store));
    }
    Ok(())
}

fn uptime(general: &GeneralStatus) -> Duration {
    Duration::from_millis(general.now_ms.saturating_sub(general.start_ms))
}

fn facts(general: &GeneralStatus, store: &CsInfo) -> Value {
    let mut facts = packets(&general.packets);
    facts.extend([
        ("version".to_owned(), general.version.clone().into()),
        ("start_ms".to_owned(), general.start_ms.into()),
        ("now_ms".to_owned(), general.now_ms.into()),
        ("uptime_s".to_owned(), uptime(general).as_secs_f64().into()),
        ("fib_entries".to_owned(), general.fib_entries.into()),
        ("pit_entries".to_owned(), general.pit_entries.into()),
        ("pit_bytes".to_owned(), general.pit_bytes.into()),
        (
            "measurement_entries".to_owned(),
            general.measurement_entries.into(),
        ),
        ("cs_entries".to_owned(), general.cs_entries.into()),
        (
            "satisfied_interests".to_owned(),
            general.satisfied_interests.into(),
        ),
        (
            "unsatisfied_interests".to_owned(),
            general.unsatisfied_interests.into(),
        ),
        ("floods".to_owned(), general.floods.into()),
        ("queued_bytes".to_owned(), general.queued_bytes.into()),
        (
            "queue_capacity_bytes".to_owned(),
            general.queue_capacity_bytes.into(),
        ),
        (
            "dropped_queues_full".to_owned(),
            general.dropped_queues_full.into(),
        ),
        ("memory".to_owned(), memory(general)),
        ("content_store".to_owned(), cs::facts(store)),
    ]);
    Value::Object(facts)
}

/// What is held in memory and may be: by part, and all together.
fn memory(general: &GeneralStatus) -> Value {
    let part = |bytes: u64, capacity: u64| json!({"bytes": bytes, "capacity_bytes": capacity});
    let parts = general.memory.iter();
    let mut facts: Map<String, Value> = parts
        .map(|p| (p.name.clone(), part(p.bytes, p.capacity_bytes)))
        .collect();
    let (bytes, capacity) = memory_sum(general);
    facts.insert("all".to_owned(), part(bytes, capacity));
    Value::Object(facts)
}

fn memory_sum(general: &GeneralStatus) -> (u64, u64) {
    general.memory.iter().fold((0, 0), |(bytes, capacity), p| {
        (
            bytes.saturating_add(p.bytes),
            capacity.saturating_add(p.capacity_bytes),
        )
    })
}

/// Packets in, out and dropped, by name.
pub fn packets(p: &PacketCounters) -> Map<String, Value> {
    [
        ("in_interests", p.in_interests),
        ("in_data", p.in_data),
        ("in_nacks", p.in_nacks),
        ("out_interests", p.out_interests),
        ("out_data", p.out_data),
        ("out_nacks", p.out_nacks),
        ("dropped_pit_full", p.dropped_pit_full),
        ("dropped_scope", p.dropped_scope),
        ("dropped_hop_limit", p.dropped_hop_limit),
        ("dropped_loop", p.dropped_loop),
        ("dropped_unsolicited", p.dropped_unsolicited),
        ("dropped_outputs_full", p.dropped_outputs_full),
    ]
    .into_iter()
    .map(|(name, n)| (name.to_owned(), n.into()))
    .collect()
}

fn lines(general: &GeneralStatus, store: &CsInfo) -> String {
    let p = &general.packets;
    let lines = [
        format!("version          {}", general.version),
        format!(
            "uptime           {}",
            show_duration(Duration::from_secs(uptime(general).as_secs()))
        ),
        format!("FIB entries      {}", general.fib_entries),
        format!("PIT entries      {}", general.pit_entries),
        format!(
            "content store    {} packets, {} hits, {} misses",
            store.entries, store.hits, store.misses
        ),
        format!(
            "Interests        {} in, {} out",
            p.in_interests, p.out_interests
        ),
        format!("Data             {} in, {} out", p.in_data, p.out_data),
        format!("Nacks            {} in, {} out", p.in_nacks, p.out_nacks),
        format!(
            "answered         {} Interests, {} not",
            general.satisfied_interests, general.unsatisfied_interests
        ),
        format!(
            "dropped          {} PIT full, {} scope, {} hop limit, {} loops, {} unsolicited, {} queues full",
            p.dropped_pit_full,
            p.dropped_scope,
            p.dropped_hop_limit,
            p.dropped_loop,
            p.dropped_unsolicited,
            general.dropped_queues_full
        ),
    ];
    let (bytes, capacity) = memory_sum(general);
    let sum = format!("memory           {bytes} of {capacity} bytes");
    let parts = general.memory.iter().map(|part| {
        format!(
            "  {:<15}{} of {} bytes",
            part.name.replace('_', " "),
            part.bytes,
            part.capacity_bytes
        )
    });
    let lines: Vec<String> = lines.into_iter().chain([sum]).chain(parts).collect();
    lines.join("\n")
}
