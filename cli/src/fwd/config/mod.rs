//! The configuration of `trunkline fwd run`: from a TOML file to what a node is started with.

use std::path::{Path, PathBuf};

use ndn_forwarder::mgmt::Trust;
use ndn_forwarder::{CachePolicy, FaceScope, PrefixRule, StrategyKind};
use ndn_io::{
    CredentialFiles, FaceConfig, FaceUri, Lend, LinkOptions, ListenConfig, MemoryConfig, NodeConfig,
};
use ndn_packet::Name;

use super::{SCHEMA, strategy};
use crate::error::CliError;
use crate::keys::public_key;
use crate::settings::{Document, Table};
use crate::tls;

/// All that a configuration file says.
pub struct FwdConfig {
    /// The node.
    pub node: NodeConfig,
    /// The filter of the log, where the file or its default gives one.
    pub log: String,
    /// Certificate, key and CA, which are yet to be read.
    tls: Option<CredentialFiles>,
    /// The key of who alone may command it, which is yet to be read, too.
    management_key: Option<PathBuf>,
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
    let mut config = parse(path, &text)?;
    if let Some(file) = config.management_key.take() {
        let key = public_key(&file).map_err(|error| {
            CliError::usage(format!("{}: management.key", path.display()), error)
        })?;
        config.node.forwarder.commands.local = Trust::Keys(vec![key]);
    }
    if let Some(files) = config.tls.take() {
        let credentials = tls::load(files)?;
        links(&mut config.node).for_each(|link| link.tls = Some(credentials.clone()));
        check(path, &config.node)?;
    }
    Ok(config)
}

/// Settings of all faces that there are and will be.
fn links(node: &mut NodeConfig) -> impl Iterator<Item = &mut LinkOptions> {
    let faces = node.faces.iter_mut().map(|face| &mut face.link);
    let listeners = node.listeners.iter_mut().map(|listener| &mut listener.link);
    faces.chain(listeners).chain([&mut node.managed_faces])
}

fn check(path: &Path, node: &NodeConfig) -> Result<(), CliError> {
    node.validate().map_err(|errors| {
        let said: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        CliError::usage(path.display().to_string(), said.join("\n"))
    })
}

/// Reads `text`, which came from `path`, and no other file.
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
    let tls = tls::files(&document.table(tls::SECTION.name))?.all();
    let faces = document.tables("face");
    if faces.is_empty() {
        return Err(CliError::usage(path.display().to_string(), "no [[face]]")
            .or("add one with listen = \"unix:///run/nfd/nfd.sock\""));
    }
    for table in &faces {
        face(table, &mut node, tls.is_some())?;
    }
    for table in document.tables("route") {
        route(&table, &mut node)?;
    }
    node.managed_faces = link(&document.table("managed_faces"))?;
    let workers = document.table("workers");
    set(&mut node.workers.count, count(&workers, "count")?);
    set(
        &mut node.workers.prefix_components,
        count(&workers, "prefix_components")?,
    );
    node.memory = memory(&document, node.forwarder.cs_capacity_bytes)?;
    if tls.is_none() {
        check(path, &node)?;
    }
    let log = document.table("log");
    let filter = needed(&log, "level", log.text("level")?)?;
    if let Err(error) = filter.parse::<tracing_subscriber::filter::Targets>() {
        return Err(log
            .error_at("level", error)
            .or("write error, warn, info, debug or trace"));
    }
    Ok(FwdConfig {
        node,
        log: filter,
        tls,
        management_key: document.table("management").path("key")?,
    })
}

fn face(table: &Table<'_>, node: &mut NodeConfig, has_tls: bool) -> Result<(), CliError> {
    let link = link(table)?;
    let (listen, connect) = (table.face_uri("listen")?, table.face_uri("connect")?);
    for (key, uri) in [("listen", &listen), ("connect", &connect)] {
        if !has_tls && uri.as_ref().is_some_and(FaceUri::needs_certificate) {
            return Err(table
                .error_at(key, "TLS needs a certificate")
                .or("add [tls] with certificate, key and ca; docs/tls.md says how they are made"));
        }
    }
    let secured = [&listen, &connect]
        .into_iter()
        .flatten()
        .any(FaceUri::needs_certificate);
    if secured && link.scope == Some(FaceScope::Local) {
        return Err(table
            .error_at(
                "scope",
                "a face by TLS leads to other hosts: local, no rule would hold for it",
            )
            .or("take it out"));
    }
    match (listen, connect) {
        (Some(uri), None) => {
            only_with(
                table,
                "connect",
                &[
                    "local_address",
                    "server_name",
                    "reconnect_min",
                    "reconnect_max",
                ],
            )?;
            let mut listener = ListenConfig::new(uri);
            listener.link = link;
            set(&mut listener.idle_timeout, table.time("idle_timeout")?);
            set(&mut listener.max_faces, count(table, "max_faces")?);
            listener.max_faces_per_address = count(table, "max_faces_per_address")?;
            set(
                &mut listener.handshake_timeout,
                table.time("handshake_timeout")?,
            );
            listener.unix_mode = table.mode("mode")?;
            node.listeners.push(listener);
        }
        (None, Some(uri)) => {
            only_with(
                table,
                "listen",
                &[
                    "max_faces",
                    "max_faces_per_address",
                    "handshake_timeout",
                    "idle_timeout",
                    "mode",
                ],
            )?;
            let mut face = FaceConfig::new(uri);
            face.link = link;
            face.local_bind = table.address("local_address")?;
            face.server_name = table.host_name("server_name")?;
            if face.server_name.is_some() && !face.uri.needs_certificate() {
                return Err(table
                    .error_at("server_name", "goes with tls:// only")
                    .or("take it out"));
            }
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
    if let Some(word) = table.choice("lend")? {
        link.lend = match word {
            "nobody" => Lend::Nobody,
            "anyone" => Lend::Anyone,
            _ => Lend::SameUser,
        };
    }
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

/// Names that self-learning takes together, by prefix.
fn groups(document: &Document<'_>) -> Result<Vec<(Name, usize)>, CliError> {
    let mut groups = Vec::new();
    for table in document.tables("strategy") {
        let Some(components) = count(&table, "group")? else {
            continue;
        };
        let prefix = needed(&table, "prefix", table.name("prefix")?)?;
        let name = needed(&table, "name", table.text("name")?)?;
        if strategy::parse(&name) != Ok(StrategyKind::SelfLearning) {
            return Err(table
                .error_at("group", format!("`{name}` learns nothing"))
                .or("take it out, or name self-learning"));
        }
        if components <= prefix.len() {
            let length = prefix.len();
            return Err(table
                .error_at("group", format!("{prefix} has {length} components itself"))
                .or("give as many components as the name of one object has"));
        }
        groups.push((prefix, components));
    }
    Ok(groups)
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
    config.learned_groups = groups(document)?;
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
    let rules = rules(document)?;
    let localhop = match management.has("localhop") {
        true => management.switch("localhop")?.unwrap_or(false),
        false => rules.is_some(),
    };
    config.commands.localhop_rib = localhop.then_some(Trust::Any);
    config.prefix_rules = rules.map(Into::into);
    set(&mut config.commands.max_age, management.time("max_age")?);
    config.version = concat!("trunkline ", env!("CARGO_PKG_VERSION")).to_owned();
    Ok(config)
}

/// What other hosts may announce, where the file says it.
fn rules(document: &Document<'_>) -> Result<Option<Vec<PrefixRule>>, CliError> {
    let tables = document.tables("authorize");
    let rules = tables.iter().map(|table| {
        let peer = needed(table, "certificate", table.peer_pattern("certificate")?)?;
        let prefixes = needed(table, "prefixes", table.names("prefixes")?)?;
        let prefixes = prefixes.iter().map(|text| {
            text.parse::<Name>().map_err(|e| {
                table
                    .error_at("prefixes", format!("`{text}`: {e}"))
                    .or("give NDN names, such as \"/hadoop\"")
            })
        });
        let prefixes = prefixes.collect::<Result<_, _>>()?;
        Ok(PrefixRule { peer, prefixes })
    });
    let rules = rules.collect::<Result<Vec<_>, CliError>>()?;
    Ok((!rules.is_empty()).then_some(rules))
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
