//! The configuration of `trunkline fwd run`: from a TOML file to what a node is started with.

use std::path::Path;

use ndn_forwarder::mgmt::Trust;
use ndn_forwarder::{FaceScope, StrategyKind};
use ndn_io::{FaceConfig, LinkOptions, ListenConfig, NodeConfig};
use ndn_packet::Name;

use super::document::{Document, Table};
use super::strategy;
use crate::error::CliError;

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
    let document = Document::parse(path, text)?;
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
            listener.unix_mode = table.mode("mode")?;
            node.listeners.push(listener);
        }
        (None, Some(uri)) => {
            only_with(table, "listen", &["max_faces", "idle_timeout", "mode"])?;
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
    set(
        &mut config.learned_flood_interval,
        learned.time("flood_interval")?,
    );
    let management = document.table("management");
    set(
        &mut config.rib_max_routes,
        count(&management, "max_routes")?,
    );
    config.commands.localhop_rib = management
        .switch("localhop")?
        .unwrap_or(false)
        .then_some(Trust::Any);
    set(&mut config.commands.max_age, management.time("max_age")?);
    config.version = concat!("trunkline ", env!("CARGO_PKG_VERSION")).to_owned();
    Ok(config)
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
mod tests {
    use super::*;
    use ndn_io::FaceUri;
    use std::time::Duration;

    fn read(text: &str) -> Result<FwdConfig, String> {
        parse(Path::new("fwd.toml"), text).map_err(|e| e.to_string())
    }

    fn refusal(text: &str) -> String {
        match read(text) {
            Ok(_) => panic!("accepted: {text}"),
            Err(said) => said,
        }
    }

    const SMALLEST: &str = "[[face]]\nlisten = \"unix:///tmp/x.sock\"\n";

    #[test]
    fn the_smallest_is_the_defaults() {
        let config = read(SMALLEST).expect("a configuration").node;
        let defaults = ndn_forwarder::Config {
            version: config.forwarder.version.clone(),
            ..Default::default()
        };
        assert_eq!(format!("{:?}", config.forwarder), format!("{defaults:?}"));
        assert_eq!(
            config.listeners,
            [ListenConfig::new(
                FaceUri::parse("unix:///tmp/x.sock").expect("a URI")
            )]
        );
        assert!(config.faces.is_empty() && config.strategies.is_empty());
    }

    #[test]
    fn a_connected_face_has_the_defaults() {
        let config = read("[[face]]\nconnect = \"tcp://127.0.0.1:6363\"\n")
            .expect("a configuration")
            .node;
        assert_eq!(
            config.faces,
            [FaceConfig::new(
                FaceUri::parse("tcp://127.0.0.1:6363").expect("a URI")
            )]
        );
    }

    #[test]
    fn the_sample_is_the_defaults_and_names_every_setting() {
        let sample = include_str!("../../fwd.sample.toml");
        let said = read(sample).expect("the sample parses").node;
        let smallest = read("[[face]]\nlisten = \"unix:///run/nfd/nfd.sock\"\n")
            .expect("a configuration")
            .node;
        assert_eq!(format!("{said:?}"), format!("{smallest:?}"));
        // With its examples switched on too, every line is accepted and every setting is there.
        let on: String = sample
            .lines()
            .map(|l| format!("{}\n", l.strip_prefix("#: ").unwrap_or(l)))
            .collect();
        read(&on).expect("the sample parses with its examples");
        for s in super::super::settings::SETTINGS {
            let line = format!("{} =", s.key);
            assert!(
                on.lines().any(|l| l.starts_with(&line)),
                "{}.{} is not in the sample",
                s.section,
                s.key
            );
            if let Some(default) = s.default {
                let plain = format!("{} = {default}", s.key);
                let quoted = format!("{} = \"{default}\"", s.key);
                assert!(
                    on.lines().any(|l| l == plain || l == quoted),
                    "{}.{} is not {default}",
                    s.section,
                    s.key
                );
            }
            assert!(
                sample.contains(s.help),
                "{}.{} is not explained as in the table",
                s.section,
                s.key
            );
        }
    }

    #[test]
    fn every_default_is_the_cores_own() {
        // Each setting given as its default changes nothing.
        for s in super::super::settings::SETTINGS {
            let Some(default) = s.default else { continue };
            let value = if default.parse::<u64>().is_ok() || default.parse::<bool>().is_ok() {
                default.to_owned()
            } else {
                format!("\"{default}\"")
            };
            let base = match s.key {
                "reconnect_min" | "reconnect_max" => {
                    "[[face]]\nconnect = \"tcp://127.0.0.1:6363\"\n"
                }
                _ => SMALLEST,
            };
            let text = match s.section {
                "face" => format!("{base}{} = {value}\n", s.key),
                "route" => continue,
                section => format!("{base}[{section}]\n{} = {value}\n", s.key),
            };
            let given = read(&text).unwrap_or_else(|e| panic!("{e}")).node;
            let absent = read(base).expect("a configuration").node;
            assert_eq!(
                format!("{given:?}"),
                format!("{absent:?}"),
                "{}.{}",
                s.section,
                s.key
            );
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let said =
            refusal("[[face]]\nlisten = \"unix:///a\"\n[content_store]\ncapasity = \"1MiB\"\n");
        assert_eq!(
            said,
            "fwd.toml:4: unknown key `capasity` in [content_store]; did you mean `capacity`?"
        );
        let said = refusal("[[face]]\nlisten = \"unix:///a\"\n[contentstore]\n");
        assert_eq!(
            said,
            "fwd.toml:3: unknown key `contentstore` in the file; did you mean `content_store`?"
        );
        let said = refusal("[face]\nlisten = \"unix:///a\"\n");
        assert_eq!(
            said,
            "fwd.toml:1: `face` is not written as a table; write [[face]]"
        );
    }

    #[test]
    fn refuses_wrong_values() {
        for (text, words) in [
            (
                "[pit]\ncapacity = 0\n",
                ["fwd.toml:4: pit.capacity", "from 1 to"],
            ),
            (
                "[pit]\ncapacity = \"many\"\n",
                ["pit.capacity", "whole number"],
            ),
            (
                "[content_store]\ncapacity = true\n",
                ["content_store.capacity", "size from"],
            ),
            (
                "[pit]\nmax_lifetime = \"4\"\n",
                ["pit.max_lifetime", "duration"],
            ),
            (
                "[[face]]\nlisten = \"gopher://x\"\n",
                ["fwd.toml:4: face.listen", "gopher"],
            ),
            ("[[face]]\n", ["neither listen nor connect", "give one"]),
            (
                "[[face]]\nlisten = \"unix:///b\"\nreconnect_min = \"1s\"\n",
                ["face.reconnect_min", "connect only"],
            ),
            (
                "[[route]]\nprefix = \"/a\"\nnexthop = \"tcp://b:1\"\n",
                ["route.nexthop", "add a [[face]]"],
            ),
            (
                "[[route]]\nnexthop = \"tcp://b:1\"\n",
                ["no prefix", "give `prefix`"],
            ),
            (
                "[[strategy]]\nprefix = \"/a\"\nname = \"fastest\"\n",
                ["strategy.name", "best-route"],
            ),
            ("[log]\nlevel = \"x=loud\"\n", ["log.level", "trace"]),
            ("[pit\n", ["fwd.toml:3", "not TOML"]),
        ] {
            let said = refusal(&format!("{SMALLEST}{text}"));
            for word in words {
                assert!(said.contains(word), "{said}");
            }
        }
        assert!(refusal("").contains("no [[face]]"));
    }

    #[test]
    fn reads_a_full_one() {
        let config = read(
            "[[face]]\nlisten = \"unix:///a\"\nmode = \"0660\"\nmax_faces = 7\n\
             [[face]]\nconnect = \"tcp://10.0.0.1:6363\"\njumbo = false\nreconnect_min = \"5ms\"\n\
             [[route]]\nprefix = \"/far\"\nnexthop = \"tcp://10.0.0.1:6363\"\ncost = 3\n\
             [[strategy]]\nprefix = \"/m\"\nname = \"multicast\"\n\
             [content_store]\ncapacity = 0\n[log]\nlevel = \"warn\"\n",
        )
        .expect("a configuration");
        assert_eq!(config.log, "warn");
        let node = config.node;
        assert_eq!(
            (node.listeners[0].unix_mode, node.listeners[0].max_faces),
            (Some(0o660), 7)
        );
        assert_eq!(node.faces[0].routes, [("/far".parse().expect("a name"), 3)]);
        assert!(!node.faces[0].link.jumbo);
        assert_eq!(
            node.faces[0].reconnect,
            (Duration::from_millis(5), Duration::from_secs(10))
        );
        assert_eq!(node.forwarder.cs_capacity_bytes, 0);
        assert_eq!(node.strategies.len(), 1);
    }
}
