//! Whole writes through whole networks: every byte accounted for, the same from the same seed, and as few as there can
//! be.

use ndn_packet::Name;
use ndn_sim::net::{NetworkConfig, Routing};
use ndn_sim::optimum;
use ndn_sim::topology::{FatTree, LinkSpec, Placement, Routes, Topology, TwoLevel, paper_16};
use ndn_sim::wire::Wire;
use ndn_sim::write::{BlockPlan, Plane, WriteConfig, WriteOutcome, Writes};
use proptest::prelude::*;
use std::time::Duration;

fn network(wire: Wire, routing: Routing, seed: u64) -> NetworkConfig {
    NetworkConfig {
        wire,
        routing,
        router: ndn_forwarder::Config::default(),
        core: ndn_forwarder::Config::default(),
        host: ndn_forwarder::Config {
            cs_capacity_bytes: 0,
            ..ndn_forwarder::Config::default()
        },
        root: "/hadoop/blocks".parse::<Name>().expect("a name"),
        face_queue_bytes: 0,
        mark_bytes: 2 << 20,
        seed,
    }
}

fn config(block_bytes: u64) -> WriteConfig {
    WriteConfig {
        block_bytes,
        ..WriteConfig::default()
    }
}

fn write(
    topology: &Topology,
    network: NetworkConfig,
    config: WriteConfig,
    plane: Plane,
    plans: &[BlockPlan],
) -> WriteOutcome {
    let writes = Writes::new(topology, network, config, plane, plans.to_vec());
    writes.run(|_| ()).expect("all blocks are written")
}

fn plan(topology: &Topology, names: &[&str]) -> BlockPlan {
    let hosts: Vec<_> = names
        .iter()
        .map(|name| topology.find(name).expect("a host"))
        .collect();
    BlockPlan {
        writer: hosts[0],
        replicas: hosts[1..].to_vec(),
    }
}

/// Every byte that a line took came out at its end.
fn conserved(outcome: &WriteOutcome) {
    for link in &outcome.traffic.links {
        assert_eq!(link.counters.sent_bytes, link.counters.delivered_bytes);
    }
}

const BLOCK: u64 = 4 << 20;

#[test]
fn table_2_of_the_paper_at_its_least() {
    let topology = paper_16(LinkSpec::default());
    let plans = [plan(&topology, &["h3", "h3", "h5", "h13"])];
    let run = |plane, routing| {
        let network = network(Wire::BARE, routing, 1);
        write(&topology, network, config(BLOCK), plane, &plans)
    };
    let named = run(Plane::Named, Routing::Computed);
    let learned = run(Plane::Named, Routing::Learned);
    let tcp = run(Plane::Tcp, Routing::Computed);
    for outcome in [&named, &learned, &tcp] {
        conserved(outcome);
        assert_eq!(outcome.traffic.dropped, 0);
    }
    let block = |n: u64| (n * BLOCK) as f64;
    let near = |bytes: u64, ideal: f64| {
        let over = bytes as f64 / ideal;
        assert!((1.0..1.02).contains(&over), "{bytes} is {over} of {ideal}");
    };
    near(named.traffic.hosts_bytes, block(3));
    near(named.traffic.all_bytes, block(6));
    near(learned.traffic.all_bytes, block(6));
    near(tcp.traffic.hosts_bytes, block(4));
    near(tcp.traffic.all_bytes, block(8));
    assert_eq!(named.traffic.idle_bytes, 0, "nobody asks who need not be");
    let idle = topology.find("h12").expect("a host");
    let (to, from) = learned.traffic.host_bytes(&topology, idle);
    assert!(
        (1..1000).contains(&(to + from)),
        "one Interest, one Nack: {to} and {from}"
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let topology = FatTree {
        hosts: 128,
        link: LinkSpec::default(),
    }
    .build()
    .expect("a fat tree");
    let placement = Placement::new(&topology);
    let run = |seed: u64, plane| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let plans: Vec<BlockPlan> = (0..24)
            .map(|_| {
                let writer = rng.choice(placement.hosts()).copied().expect("hosts");
                let replicas = placement.choose(writer, 3, &mut rng).expect("hosts");
                BlockPlan { writer, replicas }
            })
            .collect();
        let network = network(Wire::ETHERNET, Routing::Computed, seed);
        write(&topology, network, config(BLOCK / 4), plane, &plans)
    };
    for plane in [Plane::Named, Plane::Tcp] {
        let (one, same, other) = (run(7, plane), run(7, plane), run(8, plane));
        assert_eq!(one, same);
        assert_ne!(one.traffic, other.traffic);
        conserved(&one);
        conserved(&other);
    }
}

#[test]
fn full_queues_are_overcome() {
    let slow = LinkSpec {
        rate_bps: 100_000_000,
        delay: Duration::from_micros(50),
        queue_bytes: 256 << 10,
    };
    let topology = TwoLevel {
        hosts: 8,
        hosts_per_rack: 4,
        host_link: LinkSpec {
            rate_bps: 1_000_000_000,
            ..slow
        },
        uplink: slow,
    }
    .build()
    .expect("a tree");
    let plans =
        ["h1", "h2", "h3", "h4"].map(|writer| plan(&topology, &[writer, writer, "h5", "h6"]));
    for plane in [Plane::Named, Plane::Tcp] {
        let network = network(Wire::ETHERNET, Routing::Computed, 3);
        let outcome = write(&topology, network, config(BLOCK), plane, &plans);
        conserved(&outcome);
        assert_eq!(outcome.blocks.len(), 4);
        assert!(
            outcome.traffic.dropped > 0,
            "{plane:?}: the queues were to be full"
        );
        assert!(outcome.retransmitted > 0);
    }
}

/// A link of the lab's holds a quarter of a megabyte, a window of segments sixteen times as much: faces wait, as TCP
/// does, and nothing is lost.
#[test]
fn faces_wait_for_short_queues() {
    let topology = paper_16(LinkSpec {
        rate_bps: 1_000_000_000,
        delay: Duration::ZERO,
        queue_bytes: 256 << 10,
    });
    let plans = [plan(&topology, &["h3", "h3", "h5", "h13"])];
    let network = NetworkConfig {
        face_queue_bytes: 16 << 20,
        ..network(Wire::ETHERNET, Routing::Learned, 1)
    };
    let outcome = write(&topology, network, config(4 * BLOCK), Plane::Named, &plans);
    assert_eq!((outcome.traffic.dropped, outcome.retransmitted), (0, 0));
}

/// What the lab counted of the paper's Table 2 (docs/sim.md): bytes of all hosts together and between routers.
#[test]
fn bytes_agree_with_the_lab() {
    let text = include_str!("../../../lab/topologies/paper-fig5.toml");
    let topology = Topology::from_toml("paper-fig5", text)
        .expect("a topology")
        .topology;
    for (plane, hosts, of_hosts, of_core) in [
        (Plane::Tcp, ["h3", "h3", "h8", "h5"], 567.03, 283.47),
        (Plane::Named, ["h3", "h3", "h13", "h8"], 428.39, 428.51),
    ] {
        let network = NetworkConfig {
            face_queue_bytes: 16 << 20,
            ..network(Wire::ETHERNET, Routing::Learned, 1)
        };
        let plans = [plan(&topology, &hosts)];
        let outcome = write(&topology, network, config(128 << 20), plane, &plans);
        let traffic = &outcome.traffic;
        for (simulated, lab) in [
            (traffic.hosts_bytes, of_hosts),
            (traffic.core_bytes, of_core),
        ] {
            let off = simulated as f64 / 1e6 / lab - 1.0;
            assert!(
                off.abs() < 0.03,
                "{plane:?}: {simulated} bytes, {lab} MB in the lab"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// By name each link of the tree carries a block once and no other link anything: the optimum, to the byte but for
    /// headers and control; over TCP each link carries what the chain takes over it.
    #[test]
    fn writes_are_optimal(
        fat: bool,
        hosts in 12u32..64,
        replicas in 1usize..8,
        seed: u64,
    ) {
        let topology = if fat {
            FatTree { hosts, link: LinkSpec::default() }.build()
        } else {
            TwoLevel {
                hosts,
                hosts_per_rack: 5,
                host_link: LinkSpec::default(),
                uplink: LinkSpec::default(),
            }.build()
        }.expect("a network");
        let placement = Placement::new(&topology);
        let mut rng = fastrand::Rng::with_seed(seed);
        let writer = placement.hosts()[rng.usize(..placement.hosts().len())];
        let plan = BlockPlan {
            writer,
            replicas: placement.choose(writer, replicas, &mut rng).expect("hosts"),
        };
        let mut routes = Routes::new(&topology);
        let tree = optimum::multicast(&mut routes, &plan);
        let line = optimum::chain(&mut routes, &plan);
        for (plane, least) in [(Plane::Named, tree), (Plane::Tcp, line)] {
            let network = network(Wire::BARE, Routing::Computed, seed);
            let outcome = write(&topology, network, config(BLOCK), plane, std::slice::from_ref(&plan));
            conserved(&outcome);
            let carrying = outcome.traffic.links.iter().filter(|l| l.counters.sent_bytes > BLOCK / 2);
            let blocks: u64 = carrying.map(|l| l.counters.sent_bytes / BLOCK).sum();
            prop_assert_eq!(blocks, least.links);
            let bytes = outcome.traffic.all_bytes;
            let ideal = least.links * BLOCK;
            prop_assert!(bytes >= ideal && bytes <= ideal + ideal / 40 + 10_000, "{} of {}", bytes, ideal);
            let hosts = outcome.traffic.hosts_bytes;
            let ideal = least.interfaces * BLOCK;
            prop_assert!(hosts >= ideal && hosts <= ideal + ideal / 40 + 10_000, "{} of {}", hosts, ideal);
            prop_assert_eq!(outcome.traffic.idle_bytes, 0);
        }
    }
}
