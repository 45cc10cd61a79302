//! Whole reads through whole networks: who reads what another read gets it from a content store as far as there is room,
//! and no byte comes from nowhere.

use ndn_forwarder::{CachePolicy, Config};
use ndn_sim::net::{NetworkConfig, Routing};
use ndn_sim::read::{
    BlockRead, JobConfig, Lane, ReadConfig, ReadError, ReadOutcome, Reads, StoredBlock, jobs, stock,
};
use ndn_sim::topology::{FatTree, LinkSpec, NodeId, Routes, Topology, paper_16};
use ndn_sim::wire::Wire;
use std::time::Duration;

const SEGMENT: u64 = 64_512;
/// A hundred segments, the last of them whole.
const BLOCK: u64 = 100 * SEGMENT;

fn network(hosts: usize, routers: usize, policy: CachePolicy) -> NetworkConfig {
    let store = |cs_capacity_bytes| Config {
        cs_capacity_bytes,
        cs_policy: policy,
        ..Config::default()
    };
    NetworkConfig {
        wire: Wire::ETHERNET,
        routing: Routing::Computed,
        router: store(routers),
        core: store(routers),
        host: store(hosts),
        root: "/hadoop/blocks".parse().expect("a name"),
        face_queue_bytes: 16 << 20,
        mark_bytes: 2 << 20,
        seed: 1,
    }
}

fn run(
    topology: &Topology,
    network: NetworkConfig,
    blocks: &[StoredBlock],
    lanes: &[Lane],
) -> ReadOutcome {
    let reads = Reads::new(
        topology,
        network,
        ReadConfig::default(),
        blocks.to_vec(),
        lanes.to_vec(),
    );
    let outcome = reads.expect("blocks").run(|_| ()).expect("all is read");
    for link in &outcome.traffic.links {
        assert_eq!(link.counters.sent_bytes, link.counters.delivered_bytes);
    }
    outcome
}

fn read(topology: &Topology, host: &str, block: u32) -> BlockRead {
    BlockRead {
        pause: Duration::ZERO,
        reader: topology.find(host).expect("a host"),
        block,
        offset: 0,
        bytes: BLOCK,
    }
}

fn stored(topology: &Topology, hosts: &[&str]) -> StoredBlock {
    StoredBlock {
        bytes: BLOCK,
        replicas: hosts
            .iter()
            .map(|name| topology.find(name).expect("a host"))
            .collect(),
    }
}

const PLENTY: usize = 1 << 30;

#[test]
fn each_level_serves_what_it_has() {
    let topology = paper_16(LinkSpec::default());
    let blocks = [stored(&topology, &["h1"])];
    // h5 from h1; h5 again: its own store; h6: the rack's; h9 in a third rack: the core's; h1: its own replica.
    let readers = ["h5", "h5", "h6", "h9", "h1"];
    let reads = readers.map(|host| read(&topology, host, 0)).to_vec();
    let lanes = [Lane {
        start: Duration::ZERO,
        reads,
    }];
    let with = run(
        &topology,
        network(PLENTY, PLENTY, CachePolicy::Lru),
        &blocks,
        &lanes,
    );
    assert_eq!((with.reads, with.taken_bytes), (5, 5 * BLOCK));
    assert_eq!(with.local_bytes, BLOCK);
    let hits: Vec<(u16, u64)> = with.stores.iter().map(|(&t, c)| (t, c.hits)).collect();
    // What h1 gave to h5 is in h1's store as well, which serves its own read.
    assert_eq!(hits, [(0, 200), (1, 100), (2, 100)]);
    assert_eq!(with.given_bytes, BLOCK);

    let without = run(&topology, network(0, 0, CachePolicy::Lru), &blocks, &lanes);
    assert_eq!(without.given_bytes, 5 * BLOCK);
    assert!(without.stores.values().all(|c| c.hits == 0));
    let mut routes = Routes::new(&topology);
    let tcp = stock(
        &mut routes,
        Wire::ETHERNET,
        &ReadConfig::default(),
        &blocks,
        &lanes,
        1,
    );
    assert_eq!((tcp.taken_bytes, tcp.local_bytes), (5 * BLOCK, BLOCK));
    let over = without.traffic.all_bytes as f64 / tcp.all_bytes as f64;
    assert!((1.0..1.02).contains(&over), "the same ways: {over}");
    assert!(with.traffic.all_bytes * 2 < tcp.all_bytes);
}

#[test]
fn readers_at_once_share_one_way() {
    let topology = paper_16(LinkSpec::default());
    let blocks = [stored(&topology, &["h1"])];
    let lanes = ["h5", "h6", "h7"].map(|host| Lane {
        start: Duration::ZERO,
        reads: vec![read(&topology, host, 0)],
    });
    let outcome = run(
        &topology,
        network(0, 4 << 20, CachePolicy::Lru),
        &blocks,
        &lanes,
    );
    assert_eq!(outcome.taken_bytes, 3 * BLOCK);
    assert!(
        outcome.given_bytes <= BLOCK + BLOCK / 10,
        "{}",
        outcome.given_bytes
    );
}

#[test]
fn a_part_of_a_block_is_whole_segments() {
    let topology = paper_16(LinkSpec::default());
    let blocks = [stored(&topology, &["h1"])];
    let part = BlockRead {
        offset: SEGMENT - 1,
        bytes: 2,
        ..read(&topology, "h9", 0)
    };
    let none = BlockRead {
        bytes: 0,
        ..part.clone()
    };
    let beyond = BlockRead {
        offset: BLOCK,
        bytes: u64::MAX,
        ..part.clone()
    };
    let lanes = [Lane {
        start: Duration::from_secs(1),
        reads: vec![none, beyond, part],
    }];
    let outcome = run(&topology, network(0, 0, CachePolicy::Lru), &blocks, &lanes);
    assert_eq!((outcome.reads, outcome.taken_bytes), (1, 2 * SEGMENT));
    let missing = Lane {
        start: Duration::ZERO,
        reads: vec![read(&topology, "h1", 1)],
    };
    let refused = Reads::new(
        &topology,
        network(0, 0, CachePolicy::Lru),
        ReadConfig::default(),
        blocks.to_vec(),
        vec![missing],
    );
    assert_eq!(refused.err(), Some(ReadError::NoBlock { block: 1 }));
}

/// A scan of blocks that come once goes through while two are read over and over: S3-FIFO keeps these, LRU loses them.
#[test]
fn s3_fifo_withstands_a_scan() {
    let topology = paper_16(LinkSpec::default());
    let blocks: Vec<StoredBlock> = (0..32).map(|_| stored(&topology, &["h1"])).collect();
    let mut reads = Vec::new();
    let mut scan = 2..32;
    let readers = ["h5", "h6", "h7", "h8"];
    for round in 0..10 {
        for block in 0..2 {
            reads.push(read(&topology, readers[round % 4], block));
        }
        for block in scan.by_ref().take(3) {
            reads.push(read(&topology, "h5", block));
        }
    }
    let lanes = [Lane {
        start: Duration::ZERO,
        reads,
    }];
    // Room for four blocks at each router.
    let hits = |policy| {
        let outcome = run(&topology, network(0, 27 << 20, policy), &blocks, &lanes);
        outcome.stores.values().map(|c| c.hits).sum::<u64>()
    };
    let (lru, s3) = (hits(CachePolicy::Lru), hits(CachePolicy::S3Fifo));
    assert!(
        s3 > 2 * lru && s3 >= 1200,
        "{s3} by S3-FIFO, {lru} by LRU, of 1800"
    );
}

#[test]
fn jobs_read_all_their_data_the_same_from_the_same_seed() {
    let topology = FatTree {
        hosts: 128,
        link: LinkSpec::default(),
    }
    .build()
    .expect("a fat tree");
    let config = JobConfig {
        data_sets: 4,
        blocks: 8,
        block_bytes: 2 << 20,
        jobs: 6,
        resource_bytes: 256 << 10,
        ..JobConfig::default()
    };
    let once = |seed, routers| {
        let job = jobs(&topology, &config, seed).expect("hosts");
        let wanted: u64 = job
            .lanes
            .iter()
            .flat_map(|lane| &lane.reads)
            .map(|read| read.bytes)
            .sum();
        let network = network(0, routers, CachePolicy::S3Fifo);
        let outcome = run(&topology, network, &job.blocks, &job.lanes);
        assert_eq!(outcome.taken_bytes, wanted);
        let hits: u64 = outcome.stores.values().map(|c| c.hits).sum();
        // Whatever is given is taken, but for what a lost answer had sent again.
        assert!(outcome.given_bytes <= wanted + wanted / 20);
        (outcome, hits)
    };
    let (one, hits) = once(7, 64 << 20);
    assert_eq!(once(7, 64 << 20).0, one);
    assert_ne!(once(8, 64 << 20).0.traffic, one.traffic);
    assert!(hits > 0);
    let (without, none) = once(7, 0);
    assert_eq!(none, 0);
    assert!(one.given_bytes < without.given_bytes);
    assert!(one.traffic.core_bytes < without.traffic.core_bytes);
}

#[test]
fn readers_everywhere_are_hosts() {
    // A reader beside no replica in a network of one replica each: all nodes of the way are told where it leads.
    let topology = FatTree {
        hosts: 54,
        link: LinkSpec::default(),
    }
    .build()
    .expect("a fat tree");
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let blocks: Vec<StoredBlock> = hosts
        .iter()
        .map(|&host| StoredBlock {
            bytes: SEGMENT,
            replicas: vec![host],
        })
        .collect();
    let lanes: Vec<Lane> = hosts
        .iter()
        .rev()
        .enumerate()
        .map(|(block, &reader)| Lane {
            start: Duration::ZERO,
            reads: vec![BlockRead {
                pause: Duration::ZERO,
                reader,
                block: block as u32,
                offset: 0,
                bytes: SEGMENT,
            }],
        })
        .collect();
    let outcome = run(&topology, network(0, 0, CachePolicy::Lru), &blocks, &lanes);
    assert_eq!((outcome.reads, outcome.given_bytes), (54, 54 * SEGMENT));
    assert_eq!(outcome.retransmitted, 0);
}
