//! Four writers at once over a narrow core, as in the lab's `ndn-contended`: pulls share links with each other, and wait
//! for links rather than for timeouts.

use ndn_endpoint::FixedConfig;
use ndn_packet::Name;
use ndn_sim::net::{NetworkConfig, Routing};
use ndn_sim::topology::{NodeId, Placement, Topology};
use ndn_sim::wire::Wire;
use ndn_sim::write::{BlockPlan, Plane, WriteConfig, WriteOutcome, Writes};
use std::sync::Arc;
use std::time::Duration;

const BLOCK: u64 = 16 << 20;
const BLOCKS_EACH: usize = 12;

/// The lab's topology, its core links at a quarter of the hosts' rate.
fn topology() -> Topology {
    let text = include_str!("../../../lab/topologies/paper-fig5.toml");
    let narrow = text.replace(", \"r5\"]", ", \"r5\"]\nrate = \"250mbit\"");
    Topology::from_toml("contended", &narrow)
        .expect("a topology")
        .topology
}

fn plans(topology: &Topology, seed: u64) -> Vec<BlockPlan> {
    let placement = Placement::new(topology);
    let mut rng = fastrand::Rng::with_seed(seed);
    let writers = ["h3", "h5", "h12", "h13"].map(|name| topology.find(name).expect("a host"));
    let each = |writer: NodeId, rng: &mut fastrand::Rng| BlockPlan {
        writer,
        replicas: placement.choose(writer, 3, rng).expect("hosts"),
    };
    (0..BLOCKS_EACH)
        .flat_map(|_| writers.map(|writer| each(writer, &mut rng)))
        .collect()
}

fn stores(cs_capacity_bytes: usize) -> ndn_forwarder::Config {
    ndn_forwarder::Config {
        cs_capacity_bytes,
        ..ndn_forwarder::Config::default()
    }
}

fn write(topology: &Topology, seed: u64, plane: Plane, config: WriteConfig) -> WriteOutcome {
    let network = NetworkConfig {
        wire: Wire::ETHERNET,
        routing: Routing::Learned,
        router: stores(64 << 20),
        core: stores(64 << 20),
        host: stores(8 << 20),
        root: "/hadoop/blocks".parse::<Name>().expect("a name"),
        face_queue_bytes: 16 << 20,
        mark_bytes: 2 << 20,
        seed,
    };
    let writes = Writes::new(topology, network, config, plane, plans(topology, seed));
    writes.run(|_| ()).expect("all blocks are written")
}

fn config() -> WriteConfig {
    WriteConfig {
        block_bytes: BLOCK,
        // Of the packets of eight segments that clients of named data are told to write.
        in_flight: 640,
        retain: 1024,
        ..WriteConfig::default()
    }
}

/// Seconds of the slowest block.
fn slowest(outcome: &WriteOutcome) -> Duration {
    let took = outcome.blocks.iter().map(|block| block.took);
    took.max().unwrap_or_default()
}

fn peak(outcome: &WriteOutcome) -> u64 {
    let links = outcome.traffic.links.iter();
    links
        .map(|l| l.counters.queue_peak_bytes)
        .max()
        .unwrap_or(0)
}

fn told(what: &str, outcome: &WriteOutcome) -> String {
    format!(
        "{what}: {:?}, slowest block {:?}, {} MB, {} dropped, {} again, {} hits, peak {}",
        outcome.took,
        slowest(outcome),
        outcome.traffic.all_bytes / 1_000_000,
        outcome.traffic.dropped,
        outcome.retransmitted,
        outcome.cache_hits,
        peak(outcome)
    )
}

#[test]
fn pulls_share_a_narrow_core_without_timeouts() {
    let topology = topology();
    for seed in 1..=4 {
        let tcp = write(&topology, seed, Plane::Tcp, config());
        let named = write(&topology, seed, Plane::Named, config());
        let fixed = WriteConfig {
            congestion: Arc::new(FixedConfig::new(64)),
            ..config()
        };
        let fixed = write(&topology, seed, Plane::Named, fixed);
        let all = [
            told("tcp", &tcp),
            told("named", &named),
            told("fixed", &fixed),
        ]
        .join("\n");
        assert_eq!(named.traffic.dropped, 0, "{all}");
        assert!(named.took <= tcp.took, "{all}");
        assert!(named.traffic.all_bytes < tcp.traffic.all_bytes, "{all}");
        assert!(peak(&named) < peak(&fixed), "{all}");
        // An Interest that nobody answers waits for seconds.
        let usual = named.took / BLOCKS_EACH as u32;
        assert!(slowest(&named) < 3 * usual, "{all}");
    }
}
