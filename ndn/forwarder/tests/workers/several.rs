//! Several workers as one forwarder, and how these tests set one up.

use std::collections::VecDeque;
use std::time::Duration;

use ndn_forwarder::{Config, FaceCounters, FaceId, FaceSpec, Forwarder, LinkType, Message, Output};
use ndn_forwarder::{Status, Workers};
use ndn_packet::NetPacket;

/// The workers of one forwarder, and what they have for each other.
pub struct Several {
    pub workers: Vec<Forwarder>,
    pub under_way: VecDeque<(usize, Message)>,
}

impl Several {
    pub fn new(config: &Config, count: usize, components: usize) -> Self {
        let workers = Workers::new(count, components);
        Several {
            workers: (0..count)
                .map(|n| Forwarder::worker(config.clone(), &workers, n))
                .collect(),
            under_way: VecDeque::new(),
        }
    }

    pub fn of(&mut self, face: FaceId) -> &mut Forwarder {
        let worker = face.worker(self.workers.len());
        &mut self.workers[worker]
    }

    /// Takes what the workers have for each other.
    pub fn collect(&mut self) {
        for worker in &mut self.workers {
            while let Some(message) = worker.poll_message() {
                self.under_way.push_back(message);
            }
        }
    }

    /// Delivers one message.
    pub fn deliver(&mut self, now: Duration) -> bool {
        self.collect();
        let Some((to, message)) = self.under_way.pop_front() else {
            return false;
        };
        self.workers[to].receive_messages(now, &mut vec![message]);
        true
    }

    pub fn deadline(&self) -> Option<Duration> {
        self.workers.iter().filter_map(Forwarder::deadline).min()
    }

    pub fn on_deadline(&mut self, now: Duration) {
        self.workers
            .iter_mut()
            .for_each(|worker| worker.on_deadline(now));
    }

    pub fn status(&self) -> Status {
        let mut sum = self.workers[0].status();
        for worker in &self.workers[1..] {
            sum.add(&worker.status());
        }
        sum
    }

    pub fn counters(&self, face: FaceId) -> Option<FaceCounters> {
        let mut sum = self.workers[0].counters(face)?;
        for worker in &self.workers[1..] {
            sum.add(&worker.counters(face)?);
        }
        Some(sum)
    }
}

pub fn config() -> Config {
    Config {
        // The list turns at other times where it is shared out.
        dead_nonce_lifetime: Duration::from_secs(100_000),
        seed: 7,
        ..Config::default()
    }
}

pub fn spec(kind: u8) -> FaceSpec {
    match kind {
        0 => FaceSpec::local("fd://9", "unix:///run/t.sock"),
        1 => FaceSpec {
            link_type: LinkType::AdHoc,
            ..FaceSpec::remote("ether://a", "dev://b")
        },
        2 => FaceSpec {
            link_type: LinkType::MultiAccess,
            ..FaceSpec::remote("udp4://224.0.23.170:56363", "dev://b")
        },
        _ => FaceSpec::remote("udp4://192.0.2.7:6363", "udp4://192.0.2.2:6363"),
    }
}

pub fn take_outputs(forwarder: &mut Forwarder, into: &mut Vec<(FaceId, NetPacket)>) {
    while let Some(output) = forwarder.poll_output() {
        if let Output::Send { face, packet } = output {
            into.push((face, packet));
        }
    }
}
