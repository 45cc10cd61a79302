//! The simulated network that a command line asks for.

use std::path::Path;

use ndn_forwarder::Config;
use ndn_packet::Name;
use ndn_sim::net::{NetworkConfig, Routing};
use ndn_sim::topology::{FatTree, LinkSpec, NodeId, Topology, TwoLevel, paper_16, parse_rate};
use ndn_sim::wire::Wire;

use crate::args::{FramingArg, NetworkArgs, RoutingArg};
use crate::error::CliError;

/// Queue from which a face of `trunkline fwd` marks congestion.
const MARK_BYTES: u64 = 2 << 20;
/// Send queue of such a face.
const FACE_QUEUE_BYTES: u64 = 16 << 20;

/// The topology, and which of its hosts may write.
///
/// # Errors
/// A file that can't be read or is no topology, a rate that is none.
pub fn topology(args: &NetworkArgs) -> Result<(Topology, Vec<NodeId>), CliError> {
    let wrong = |e: ndn_sim::topology::TopologyError| CliError::usage(&args.topology, e);
    let link = LinkSpec {
        rate_bps: parse_rate(&args.rate).map_err(|e| CliError::usage("--rate", e))?,
        delay: args.delay,
        queue_bytes: args.queue,
    };
    let topology = match args.topology.as_str() {
        "fat-tree" => FatTree {
            hosts: args.hosts,
            link,
        }
        .build()
        .map_err(wrong)?,
        "two-level" => TwoLevel {
            hosts: args.hosts,
            hosts_per_rack: args.rack,
            host_link: link,
            uplink: link,
        }
        .build()
        .map_err(wrong)?,
        "paper-16" => paper_16(link),
        file => {
            let path = Path::new(file);
            let text = std::fs::read_to_string(path).map_err(|e| {
                CliError::file(path, &e).or("give fat-tree, two-level, paper-16 or a topology file")
            })?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let read = Topology::from_toml(&name, &text).map_err(wrong)?;
            // A NameNode is in every file, and never simulated.
            let idle = read.idle_roles.iter().filter(|&&role| role != "namenode");
            let idle: Vec<&str> = idle.copied().collect();
            if !idle.is_empty() {
                eprintln!(
                    "trunkline: {file}: not simulated: {}; the roles are left aside",
                    idle.join(", ")
                );
            }
            return Ok((read.topology, read.clients));
        }
    };
    let writers = topology.datanodes().collect();
    Ok((topology, writers))
}

/// How payload becomes frames.
pub fn wire(args: &NetworkArgs) -> Wire {
    match args.framing {
        FramingArg::Ethernet => Wire::ETHERNET,
        FramingArg::Offload => Wire::OFFLOAD,
        FramingArg::Bare => Wire::BARE,
    }
}

/// How the network behaves.
///
/// # Errors
/// Routes that are learned where there are loops: what is asked all around would not end.
pub fn config(args: &NetworkArgs, topology: &Topology) -> Result<NetworkConfig, CliError> {
    if args.routing == RoutingArg::Learned && !topology.is_tree() {
        return Err(CliError::usage(
            "--routing learned",
            format!("{} has loops", topology.name()),
        )
        .or("take --routing computed, or a two-level tree"));
    }
    Ok(NetworkConfig {
        wire: wire(args),
        routing: match args.routing {
            RoutingArg::Computed => Routing::Computed,
            RoutingArg::Learned => Routing::Learned,
        },
        router: Config::default(),
        core: Config::default(),
        // As in a JVM that holds the plug-in: caches belong into routers.
        host: Config {
            cs_capacity_bytes: 0,
            ..Config::default()
        },
        root: Name::default()
            .append_generic("hadoop")
            .append_generic("blocks"),
        face_queue_bytes: FACE_QUEUE_BYTES,
        mark_bytes: MARK_BYTES,
        seed: args.seed,
    })
}
