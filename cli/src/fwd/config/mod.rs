//! The configuration of `trunkline fwd run`: from a TOML file to what a node is started with.

use std::path::Path;

use ndn_forwarder::mgmt::Trust;
use ndn_forwarder::{CachePolicy, FaceScope, StrategyKind};
use ndn_io::{FaceConfig, LinkOptions, ListenConfig, MemoryConfig, NodeConfig};
use ndn_packet::Name;

use super::{SCHEMA, strategy};
use crate::error::CliError;
use crate::settings::{Document, Table};

/// All that a configuration file says.
pub struct FwdConfig {
    /// The node.
    pub node: NodeConfig,
    /// The filter of the log, where the file or its default gives one.
    pub log: String,
}

/// Reads the file at `path`.
///
/// # Errors
/// A usage error that names file, line, key and what would be right.
pub fn load(path: &Path) -> Result<FwdConfig, CliError> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        let error = CliError::file(path, &e);
        CliError { exit: crate::error::Exit::Usage, ..error }
            .or("write one with a [[face]] that has listen = \"unix:///run/nfd/nfd.sock\"; cli/fwd.sample.toml explains every setting")
    })?;
    parse(path, &text)
}

/// Reads `text`, which came from `path`.
///
/// # Errors
/// As [`load`].
pub fn parse(path: &Path, text: &str) -> Result<FwdConfig, CliError> {
    let document = Document::parse(path, text, &SCHEMA)?;
    let mut node = NodeConfig {
        thread_name: String::from("ndn-forwarder"),
        forwarder: forwarder(&document)?,
        strategies: strategies(&document)?,
        ..NodeConfig::default()
    };
    let faces = document.tables("face");
    if faces.is_empty() {
        return Err(CliError::usage(path.display().to_string(), "no [[face]]")
            .or("add one with listen = \"unix:///run/nfd/nfd.sock\""));
    }
    for table in &faces {
        face(table, &mut node)?;
    }
    for table in document.tables("route") {
        route(&table, &mut node)?;
    }
    node.managed_faces = link(&document.table("managed_faces"))?;
    node.memory = memory(&document, node.forwarder.cs_capacity_bytes)?;
    node.validate().map_err(|errors| {
        let said: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        CliError::usage(path.display().to_string(), said.join("\n"))
    })?;
    let log = document.table("log");
    let filter = needed(&log, "level", log.text("level")?)?;
    if let Err(error) = filter.parse::<tracing_subscriber::filter::Targets>() {
        return Err(log
            .error_at("level", error)
            .or("write error, warn, info, debug or trace"));
    }
    Ok(FwdConfig { node, log: filter })
}

fn face(table: &Table<'_>, node: &mut NodeConfig) -> Result<(), CliError> {
    let link = link(table)?;
    match (table.face_uri("listen")?, table.face_uri("connect")?) {
        (Some(uri), None) => {
            only_with(
                table,
                "connect",
                &["local_address", "reconnect_min", "reconnect_max"],
            )?;
            let mut listener = ListenConfig::new(uri);
            listener.link = link;
            set(&mut listener.idle_timeout, table.time("idle_timeout")?);
            set(&mut listener.max_faces, count(table, "max_faces")?);
            listener.max_faces_per_address = count(table, "max_faces_per_address")?;
            listener.unix_mode = table.mode("mode")?;
            node.listeners.push(listener);
        }
        (None, Some(uri)) => {
            only_with(
                table,
                "listen",
                &["max_faces", "max_faces_per_address", "idle_timeout", "mode"],
            )?;
            let mut face = FaceConfig::new(uri);
            face.link = link;
            face.local_bind = table.address("local_address")?;
            set(&mut face.reconnect.0, table.time("reconnect_min")?);
            set(&mut face.reconnect.1, table.time("reconnect_max")?);
            node.faces.push(face);
        }
        (Some(_), Some(_)) => {
            return Err(table
                .error("both listen and connect are given")
                .or("write two [[face]] tables"));
        }
        (None, None) => {
            return Err(table
                .error("neither listen nor connect is given")
                .or("give one, such as listen = \"unix:///run/nfd/nfd.sock\""));
        }
    }
    Ok(())
}

fn link(table: &Table<'_>) -> Result<LinkOptions, CliError> {
    let mut link = LinkOptions {
        mtu: size(table, "mtu")?,
        ..LinkOptions::default()
    };
    set(&mut link.jumbo, table.switch("jumbo")?);
    set(&mut link.shared_memory, table.switch("shared_memory")?);
    set(&mut link.ring_bytes, size(table, "ring")?);
    set(&mut link.send_queue_bytes, size(table, "send_queue")?);
    set(
        &mut link.mark_threshold_bytes,
        size(table, "mark_threshold")?,
    );
    set(&mut link.socket_buffer_bytes, size(table, "socket_buffer")?);
    link.dscp = count(table, "dscp")?.and_then(|point| u8::try_from(point).ok());
    set(
        &mut link.reassembly_messages,
        count(table, "reassembly_messages")?,
    );
    set(&mut link.reassembly_bytes, size(table, "reassembly")?);
    link.scope = table.choice("scope")?.map(|word| {
        if word == "local" {
            FaceScope::Local
        } else {
            FaceScope::NonLocal
        }
    });
    link.discovery = table.switch("discovery")?;
    Ok(link)
}

fn only_with(table: &Table<'_>, other: &str, keys: &[&str]) -> Result<(), CliError> {
    match keys.iter().find(|key| table.has(key)) {
        Some(key) => Err(table
            .error_at(key, format!("goes with {other} only"))
            .or("take it out")),
        None => Ok(()),
    }
}

fn route(table: &Table<'_>, node: &mut NodeConfig) -> Result<(), CliError> {
    let prefix = needed(table, "prefix", table.name("prefix")?)?;
    let nexthop = needed(table, "nexthop", table.face_uri("nexthop")?)?;
    let cost = needed(table, "cost", table.count("cost")?)?;
    let Some(face) = node.faces.iter_mut().find(|f| f.uri == nexthop) else {
        let known: Vec<String> = node.faces.iter().map(|f| f.uri.to_string()).collect();
        let way_out = if known.is_empty() {
            format!("add a [[face]] with connect = \"{nexthop}\"")
        } else {
            format!("connect addresses are {}", known.join(", "))
        };
        return Err(table
            .error_at("nexthop", format!("no [[face]] connects to {nexthop}"))
            .or(way_out));
    };
    face.routes.push((prefix, cost));
    Ok(())
}

fn strategies(document: &Document<'_>) -> Result<Vec<(Name, StrategyKind)>, CliError> {
    let mut chosen = Vec::new();
    for table in document.tables("strategy") {
        let prefix = needed(&table, "prefix", table.name("prefix")?)?;
        let name = needed(&table, "name", table.text("name")?)?;
        let kind =
            strategy::parse(&name).map_err(|e| table.error_at("name", e).or(strategy::HINT))?;
        chosen.push((prefix, kind));
    }
    Ok(chosen)
}

fn forwarder(document: &Document<'_>) -> Result<ndn_forwarder::Config, CliError> {
    let mut config = ndn_forwarder::Config::default();
    let store = document.table("content_store");
    set(&mut config.cs_capacity_bytes, size(&store, "capacity")?);
    set(&mut config.cs_copy_below_bytes, size(&store, "copy_below")?);
    let policy = store.choice("policy")?.and_then(CachePolicy::from_label);
    set(&mut config.cs_policy, policy);
    let pit = document.table("pit");
    set(&mut config.pit_max_entries, count(&pit, "capacity")?);
    set(&mut config.pit_max_per_face, count(&pit, "per_face")?);
    set(&mut config.pit_max_bytes, size(&pit, "memory")?);
    set(&mut config.max_interest_lifetime, pit.time("max_lifetime")?);
    set(&mut config.dead_nonce_max_entries, count(&pit, "nonces")?);
    set(&mut config.dead_nonce_lifetime, pit.time("nonce_lifetime")?);
    set(
        &mut config.retx_suppression_min,
        pit.time("suppression_min")?,
    );
    set(
        &mut config.retx_suppression_max,
        pit.time("suppression_max")?,
    );
    if config.retx_suppression_max < config.retx_suppression_min {
        return Err(pit
            .error_at("suppression_max", "is below suppression_min")
            .or("raise it"));
    }
    let learned = document.table("self_learning");
    set(
        &mut config.learned_max_entries,
        count(&learned, "capacity")?,
    );
    set(&mut config.learned_max_bytes, size(&learned, "memory")?);
    set(
        &mut config.learned_flood_interval,
        learned.time("flood_interval")?,
    );
    let management = document.table("management");
    set(
        &mut config.rib_max_routes,
        count(&management, "max_routes")?,
    );
    set(&mut config.routes_max_bytes, size(&management, "memory")?);
    let outputs = document.table("outputs");
    set(&mut config.outputs_max_bytes, size(&outputs, "capacity")?);
    config.commands.localhop_rib = management
        .switch("localhop")?
        .unwrap_or(false)
        .then_some(Trust::Any);
    set(&mut config.commands.max_age, management.time("max_age")?);
    config.version = concat!("trunkline ", env!("CARGO_PKG_VERSION")).to_owned();
    Ok(config)
}

/// Receive buffers beside those that the content store's packets lie in.
const BUFFERS_BESIDE_STORE: usize = 128 << 20;

fn memory(document: &Document<'_>, content_store: usize) -> Result<MemoryConfig, CliError> {
    let capacity = |section| size(&document.table(section), "capacity");
    let mut memory = MemoryConfig {
        capacity_bytes: capacity("memory")?,
        receive_buffers_bytes: content_store.saturating_add(BUFFERS_BESIDE_STORE),
        ..MemoryConfig::default()
    };
    set(&mut memory.send_queues_bytes, capacity("send_queues")?);
    set(
        &mut memory.receive_buffers_bytes,
        capacity("receive_buffers")?,
    );
    set(&mut memory.reassembly_bytes, capacity("reassembly")?);
    set(&mut memory.faces_bytes, capacity("faces")?);
    Ok(memory)
}

fn size(table: &Table<'_>, key: &str) -> Result<Option<usize>, CliError> {
    table
        .size(key)?
        .map(|n| usize::try_from(n).map_err(|e| table.error_at(key, e)))
        .transpose()
}

fn count(table: &Table<'_>, key: &str) -> Result<Option<usize>, CliError> {
    table
        .count(key)?
        .map(|n| usize::try_from(n).map_err(|e| table.error_at(key, e)))
        .transpose()
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn needed<T>(table: &Table<'_>, key: &str, value: Option<T>) -> Result<T, CliError> {
    value.ok_or_else(|| table.error(format!("no {key}")).or(format!("give `{key}`")))
}

#[cfg(test)]
mod tests;
