//! A forwarder under simulated time, and the words to speak of it.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod client;

use ndn_forwarder::{Config, FaceId, FacePersistency, FaceSpec, Forwarder, Output};
use ndn_packet::{
    Data, Interest, InterestBuilder, NackReason, Name, NetKind, NetPacket, PitToken, SigningKey,
};
use std::time::Duration;

pub fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// An Interest with a nonce.
pub fn interest(uri: &str, nonce: u32) -> NetPacket {
    interest_with(uri, |b| b.nonce(nonce))
}

pub fn interest_with(
    uri: &str,
    f: impl FnOnce(InterestBuilder<'_>) -> InterestBuilder<'_>,
) -> NetPacket {
    NetPacket::interest(Interest::parse(f(Interest::builder(&name(uri))).build()).unwrap())
}

pub fn data(uri: &str) -> NetPacket {
    data_fresh(uri, 0)
}

pub fn data_fresh(uri: &str, freshness_ms: u64) -> NetPacket {
    let name = name(uri);
    let wire = Data::builder(&name)
        .freshness(ms(freshness_ms))
        .content(b"content")
        .sign(&SigningKey::DigestSha256);
    NetPacket::data(Data::parse(wire).unwrap())
}

pub fn nack_of(packet: &NetPacket, reason: NackReason) -> NetPacket {
    let NetKind::Interest(interest) = &packet.packet else {
        panic!("not an Interest")
    };
    NetPacket::nack(reason, interest.clone()).with_pit_token(packet.pit_token)
}

pub fn token(bytes: &[u8]) -> Option<PitToken> {
    Some(PitToken::new(bytes).unwrap())
}

pub struct World {
    pub fw: Forwarder,
    pub now: Duration,
    /// Faces whose Data was rejected, as the driver is told.
    pub blamed: Vec<FaceId>,
}

impl World {
    pub fn new(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        World {
            fw: Forwarder::new(config),
            now: Duration::from_secs(1000),
            blamed: Vec::new(),
        }
    }

    pub fn local(&mut self) -> FaceId {
        self.fw
            .add_face(self.now, FaceSpec::local("fd://1", "unix:///run/t.sock"))
    }

    pub fn remote(&mut self) -> FaceId {
        self.fw.add_face(
            self.now,
            FaceSpec::remote("udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363"),
        )
    }

    /// A face of somebody who has connected, and proved nothing.
    pub fn stranger(&mut self) -> FaceId {
        let spec = FaceSpec {
            persistency: FacePersistency::OnDemand,
            ..FaceSpec::remote("tcp4://192.0.2.1:5000", "tcp4://192.0.2.2:6363")
        };
        self.fw.add_face(self.now, spec)
    }

    pub fn route(&mut self, uri: &str, face: FaceId, cost: u64) {
        self.fw.add_route(&name(uri), face, cost).unwrap();
    }

    pub fn receive(&mut self, face: FaceId, packet: NetPacket) -> Vec<(FaceId, NetPacket)> {
        self.fw.receive(self.now, face, packet);
        self.sent()
    }

    pub fn sent(&mut self) -> Vec<(FaceId, NetPacket)> {
        let mut sent = Vec::new();
        while let Some(output) = self.fw.poll_output() {
            match output {
                Output::Send { face, packet } => sent.push((face, packet)),
                Output::Rejected { face, .. } => self.blamed.push(face),
                other => panic!("unexpected {other:?}"),
            }
        }
        sent
    }

    /// Lets time pass, doing what is due on the way; returns what was sent.
    pub fn wait(&mut self, time: Duration) -> Vec<(FaceId, NetPacket)> {
        let end = self.now + time;
        while let Some(due) = self.fw.deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.fw.on_deadline(self.now);
        }
        self.now = end;
        self.fw.on_deadline(self.now);
        self.sent()
    }

    /// Nothing is pending, and no face counts anything as pending.
    pub fn assert_idle(&self) {
        let status = self.fw.status();
        assert_eq!((status.pit_entries, status.pit_bytes), (0, 0));
        assert_eq!(
            (status.packets.pending_in, status.packets.pending_out),
            (0, 0)
        );
        for (id, _, _, counters) in self.fw.faces() {
            assert_eq!(
                (counters.pending_in, counters.pending_out),
                (0, 0),
                "face {id}"
            );
        }
    }
}

/// What was sent, as short texts: `256 interest /a`, `257 data /a`, `256 nack(no route) /a`.
pub fn brief(sent: &[(FaceId, NetPacket)]) -> Vec<String> {
    let text = |(face, packet): &(FaceId, NetPacket)| {
        let kind = match &packet.packet {
            NetKind::Interest(_) => "interest".to_owned(),
            NetKind::Data(_) => "data".to_owned(),
            NetKind::Nack { reason, .. } => format!("nack({reason})"),
        };
        format!("{face} {kind} {}", packet.name().to_name())
    };
    sent.iter().map(text).collect()
}

/// Faces that something was sent to, in order of their numbers.
pub fn faces(sent: &[(FaceId, NetPacket)]) -> Vec<FaceId> {
    let mut faces: Vec<FaceId> = sent.iter().map(|(face, _)| *face).collect();
    faces.sort();
    faces
}
