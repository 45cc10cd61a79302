//! Times by fair shares against what can be worked out, against the simulation of every packet, and against the lab.

use ndn_packet::Name;
use ndn_sim::Cut;
use ndn_sim::net::{NetworkConfig, Routing};
use ndn_sim::time::{Happening, Plane, Progress, TimeConfig, Use, WriteTimes, writes};
use ndn_sim::topology::{LinkSpec, NodeId, Placement, Topology, TwoLevel};
use ndn_sim::wire::Wire;
use ndn_sim::write::{self, BlockPlan, WriteConfig, Writes};
use std::collections::HashMap;
use std::time::Duration;

/// The lab's topology of the NDN paper, hosts' links and those between routers of these rates in Mbit/s.
fn paper_fig5(hosts: u32, core: u32, queue: &str) -> Topology {
    let text = include_str!("../../../lab/topologies/paper-fig5.toml");
    let text = text
        .replace("\"1gbit\"", &format!("\"{hosts}mbit\""))
        .replace("256KiB", queue)
        .replace(", \"r5\"]", &format!(", \"r5\"]\nrate = \"{core}mbit\""));
    Topology::from_toml("paper-fig5", &text)
        .expect("a topology")
        .topology
}

fn host(topology: &Topology, name: &str) -> NodeId {
    topology.find(name).expect("a host")
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn last(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

fn shares(topology: &Topology, plane: Plane, plans: &[BlockPlan], bytes: u64) -> WriteTimes {
    writes(topology, TimeConfig::default(), plane, plans, bytes, |_| ())
}

/// The same writes, every packet simulated: when each writer was done, in seconds.
fn packets(topology: &Topology, plane: write::Plane, plans: &[BlockPlan], bytes: u64) -> Vec<f64> {
    let stores = |cs_capacity_bytes| ndn_forwarder::Config {
        cs_capacity_bytes,
        ..ndn_forwarder::Config::default()
    };
    let network = NetworkConfig {
        wire: Wire::ETHERNET,
        routing: Routing::Learned,
        router: stores(64 << 20),
        core: stores(64 << 20),
        host: stores(8 << 20),
        root: "/hadoop/blocks".parse::<Name>().expect("a name"),
        face_queue_bytes: 16 << 20,
        mark_bytes: 2 << 20,
        seed: 1,
    };
    let config = WriteConfig {
        block_bytes: bytes,
        // Clients of named data write packets of eight segments.
        in_flight: if plane == write::Plane::Named {
            640
        } else {
            80
        },
        retain: 1024,
        ..WriteConfig::default()
    };
    let outcome = Writes::new(topology, network, config, plane, plans.to_vec())
        .run(|_| ())
        .expect("all blocks are written");
    let mut done: HashMap<NodeId, Duration> = HashMap::new();
    for block in &outcome.blocks {
        *done.entry(block.plan.writer).or_default() += block.took;
    }
    done.values().map(Duration::as_secs_f64).collect()
}

/// Bits that a block puts on a link over TCP.
fn tcp_bits(bytes: u64) -> f64 {
    let cut = Cut::default();
    let segments = 0..cut.segments(bytes);
    let payload = segments.map(|n| cut.packet_header + cut.body(bytes, n));
    8.0 * payload.map(|p| Wire::ETHERNET.bytes(p)).sum::<u64>() as f64
}

fn near(what: &str, found: f64, expected: f64, most: f64) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() <= most,
        "{what}: {found}, and {expected} was expected"
    );
}

// ---- what can be worked out ----

/// Two racks of four hosts, hosts at 1 Gbit/s, and links to the top at this rate.
fn two_racks(uplink_bps: u64) -> Topology {
    let host_link = LinkSpec {
        rate_bps: 1_000_000_000,
        delay: Duration::from_micros(5),
        queue_bytes: 256 << 10,
    };
    TwoLevel {
        hosts: 8,
        hosts_per_rack: 4,
        host_link,
        uplink: LinkSpec {
            rate_bps: uplink_bps,
            ..host_link
        },
    }
    .build()
    .expect("a tree")
}

fn plan(topology: &Topology, names: &[&str]) -> BlockPlan {
    let hosts: Vec<NodeId> = names.iter().map(|name| host(topology, name)).collect();
    BlockPlan {
        writer: hosts[0],
        replicas: hosts[1..].to_vec(),
    }
}

const BLOCK: u64 = 128 << 20;

#[test]
fn a_writer_alone_has_its_link() {
    let topology = two_racks(4_000_000_000);
    let plans = [plan(&topology, &["h1", "h1", "h5", "h6"])];
    for plane in Plane::ALL {
        let found = shares(&topology, plane, &plans, BLOCK);
        near(
            plane.label(),
            last(&found.writers),
            tcp_bits(BLOCK) / 1e9,
            0.01,
        );
        assert_eq!(found.blocks, found.writers);
    }
}

/// Racks joined at 1 Gbit/s, a writer on each host of the first, chains that come back to it: each has a quarter of the
/// link out of the rack by name, and over TCP, which takes every block over it twice, an eighth.
#[test]
fn who_shares_a_link_waits_for_it() {
    let topology = two_racks(1_000_000_000);
    let chains = [
        ["h1", "h5", "h2", "h6"],
        ["h2", "h6", "h3", "h7"],
        ["h3", "h7", "h4", "h8"],
        ["h4", "h8", "h1", "h5"],
    ];
    let plans = chains.map(|names| plan(&topology, &names));
    for (plane, crossings) in [(Plane::Tcp, 8.0), (Plane::Named, 4.0), (Plane::Mirror, 4.0)] {
        let found = shares(&topology, plane, &plans, BLOCK);
        let expected = crossings * tcp_bits(BLOCK) / 1e9;
        near(plane.label(), last(&found.writers), expected, 0.01);
        near(plane.label(), mean(&found.writers), expected, 0.01);
    }
}

/// A thousand writers, for whom shares are computed only now and then: the same times as with exact shares.
#[test]
fn many_writers_have_nearly_exact_times() {
    let host_link = LinkSpec::default();
    let topology = TwoLevel {
        hosts: 1000,
        hosts_per_rack: 20,
        host_link,
        uplink: LinkSpec {
            rate_bps: 50_000_000_000,
            ..host_link
        },
    };
    let topology = topology.build().expect("a tree");
    let plans = drawn(&topology, &topology.hosts().collect::<Vec<_>>(), 2, 1);
    for plane in Plane::ALL {
        let run = |part| {
            let config = TimeConfig {
                part,
                ..TimeConfig::default()
            };
            writes(&topology, config, plane, &plans, 16 << 20, |_| ())
        };
        let (exact, usual) = (run(0.0), run(TimeConfig::default().part));
        assert_eq!(usual, run(TimeConfig::default().part), "the same again");
        near(
            plane.label(),
            mean(&usual.writers),
            mean(&exact.writers),
            0.01,
        );
        near(
            plane.label(),
            last(&usual.writers),
            last(&exact.writers),
            0.01,
        );
        near(
            plane.label(),
            mean(&usual.blocks),
            mean(&exact.blocks),
            0.01,
        );
    }
}

/// So many blocks of each writer, on replicas as HDFS places them.
fn drawn(topology: &Topology, writers: &[NodeId], each: usize, seed: u64) -> Vec<BlockPlan> {
    let placement = Placement::new(topology);
    let mut rng = fastrand::Rng::with_seed(seed);
    let all = (0..each).flat_map(|_| writers.iter().copied());
    all.map(|writer| BlockPlan {
        writer,
        replicas: placement.choose(writer, 3, &mut rng).expect("hosts"),
    })
    .collect()
}

// ---- every packet ----

/// Four writers over a narrow core, each case one draw: packets share links less evenly than shares do, and over TCP are
/// lost at full queues in whole units of 64 KiB, so that one writer may be 15% off by name and 20% over TCP. Neither way
/// more than the other: over all cases it is 5%.
#[test]
fn shares_agree_with_packets() {
    for (plane, other, most) in [
        (Plane::Named, write::Plane::Named, 0.15),
        (Plane::Tcp, write::Plane::Tcp, 0.2),
    ] {
        let mut ratios = Vec::new();
        for (hosts, core, queue) in [
            (200, 50, "256KiB"),
            (1000, 125, "1MiB"),
            (1000, 250, "1MiB"),
            (1000, 1000, "2MiB"),
        ] {
            let topology = paper_fig5(hosts, core, queue);
            let writers = ["h3", "h5", "h12", "h13"].map(|name| host(&topology, name));
            for seed in 1..=3 {
                let plans = drawn(&topology, &writers, 12, seed);
                let found = shares(&topology, plane, &plans, 16 << 20).writers;
                let every = packets(&topology, other, &plans, 16 << 20);
                let what = format!("{}, {hosts}/{core} Mbit/s, {seed}", plane.label());
                near(&format!("{what}, mean"), mean(&found), mean(&every), most);
                near(&format!("{what}, last"), last(&found), last(&every), most);
                ratios.push(mean(&found) / mean(&every));
            }
        }
        near(plane.label(), mean(&ratios), 1.0, 0.05);
    }
}

// ---- the lab ----

/// The figures of a row of docs/results.md, from left to right.
fn lab(section: &str, what: &str) -> Vec<f64> {
    let page = include_str!("../../../docs/results.md");
    let section = page
        .split("\n## ")
        .find(|part| part.lines().next() == Some(section))
        .unwrap_or_else(|| panic!("no section {section}"));
    let row = section
        .lines()
        .find(|line| line.starts_with(&format!("| {what} |")))
        .unwrap_or_else(|| panic!("no row {what}"));
    let cells = row.split('|').map(|cell| cell.trim().replace(',', ""));
    cells.filter_map(|cell| cell.parse().ok()).collect()
}

/// `ndn-contended`, with the pipelines that it draws. Shares are what links allow: the lab can't be faster. It is slower
/// by what they leave out: losses, windows that grow anew, replicas that drift apart, and the NameNode's part of each of
/// 16 files; links there were full for 62 to 74% of the time. So it may take a quarter more.
#[test]
fn four_writers_take_what_the_lab_says() {
    let topology = paper_fig5(200, 50, "256KiB");
    let lines = include_str!("data/ndn-contended.txt").lines();
    let plans: Vec<BlockPlan> = lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| plan(&topology, &line.split([' ', ',']).collect::<Vec<_>>()))
        .collect();
    assert_eq!(plans.len(), 64);
    let row = |what: &str| lab("ndn-contended", &format!("hosts at 200 Mbit/s: {what}"));
    let mut ratios = Vec::new();
    for (at, plane) in [Plane::Tcp, Plane::Named].into_iter().enumerate() {
        let found = shares(&topology, plane, &plans, 8 << 20).writers;
        for (what, found) in [
            ("writers' mean", mean(&found)),
            ("last writer done", last(&found)),
        ] {
            let over = row(what)[at] / found;
            assert!(
                (0.98..1.25).contains(&over),
                "{plane:?}, {what}: {over} of {found}"
            );
        }
        ratios.push(mean(&found));
    }
    // What one plane takes of the other's time is nearer: both leave out much the same.
    let of_lab = row("writers' mean");
    near(
        "named of TCP's",
        ratios[1] / ratios[0],
        of_lab[1] / of_lab[0],
        0.1,
    );
}

/// `mr-fig10`: one writer and all hosts at one switch, 100 Mbit/s. How much is headers depends on how large the frames
/// are in which virtual links have them shaped, of 1,448 bytes or up to 64 KiB: 4.6%. Mirrored
/// to five replicas the lab's block takes up to 4% more than over TCP, which the model does not say.
#[test]
fn a_writer_alone_takes_what_the_lab_says() {
    let link = LinkSpec {
        rate_bps: 100_000_000,
        delay: Duration::ZERO,
        queue_bytes: 256 << 10,
    };
    let star = TwoLevel {
        hosts: 8,
        hosts_per_rack: 8,
        host_link: link,
        uplink: link,
    };
    let star = star.build().expect("a rack");
    let chain = ["h7", "h2", "h3", "h4", "h5", "h6"];
    for replicas in 2..=5 {
        let plans = [plan(&star, &chain[..=replicas])];
        let of_lab = lab("mr-fig10", &format!("{replicas} replicas: data"));
        for (at, (plane, within)) in [(Plane::Tcp, 0.046), (Plane::Mirror, 0.06)]
            .into_iter()
            .enumerate()
        {
            let found = last(&shares(&star, plane, &plans, BLOCK).writers);
            near(plane.label(), found, of_lab[at], within);
        }
    }
}

/// Hosts at one switch whose uplinks are narrower than their downlinks: host `h` sends over line `2h`.
fn over_a_switch(up_bps: f64, down_bps: f64, writers: f64, flows: &[&[usize]]) -> f64 {
    const WRITER: usize = 7;
    let capacity = (0..18).map(|line| match line {
        line if line % 2 == 1 => down_bps,
        line if line / 2 >= WRITER => writers,
        _ => up_bps,
    });
    let mut progress = Progress::new(capacity.collect(), 0.0);
    for (token, flow) in flows.iter().enumerate() {
        let lines = flow.iter().map(|&line| Use {
            line: line as u32,
            times: 1,
        });
        progress.begin(token as u64, lines.collect(), tcp_bits(BLOCK));
    }
    let mut ended = 0.0;
    while let Some(happening) = progress.next_happening() {
        assert!(matches!(happening, Happening::Done(_)));
        ended = progress.now();
    }
    ended
}

fn chain(hosts: &[usize]) -> Vec<usize> {
    let hops = hosts.windows(2);
    hops.flat_map(|hop| [2 * hop[0], 2 * hop[1] + 1]).collect()
}

fn copies(hosts: &[usize]) -> Vec<usize> {
    let down = hosts[1..].iter().map(|host| 2 * host + 1);
    down.chain([2 * hosts[0]]).collect()
}

/// `mr-uplink` and the two writers of `mr-fig10`: DataNodes' uplinks are narrow, and HDFS may order the two chains as it
/// likes. The tolerance is that of the headers, as above.
#[test]
fn narrow_uplinks_cost_what_the_lab_says() {
    let data = lab("mr-uplink", "data");
    let seconds = |mbit_s: f64| 8.0 * BLOCK as f64 / mbit_s / 1e6;
    let one = [7, 2, 3, 4];
    let found = over_a_switch(50e6, 200e6, 200e6, &[&chain(&one)]);
    near("a chain", found, seconds(data[2]), 0.046);
    let found = over_a_switch(50e6, 200e6, 200e6, &[&copies(&one)]);
    near("copies", found, seconds(data[3]), 0.046);

    let both = lab("mr-fig10", "two writers, 3 replicas: data");
    for other in [[8, 2, 3, 4], [8, 3, 2, 4], [8, 4, 3, 2], [8, 3, 4, 2]] {
        let found = over_a_switch(50e6, 100e6, 100e6, &[&chain(&one), &chain(&other)]);
        near("two chains", found, both[0], 0.046);
        let found = over_a_switch(50e6, 100e6, 100e6, &[&copies(&one), &copies(&other)]);
        // The lab's is the median of both, of which one may be done before the other.
        let share = both[1] / found;
        assert!(
            (0.75..=1.046).contains(&share),
            "two writers' copies: {share}"
        );
    }
}
