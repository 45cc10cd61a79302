//! A chain's segments by name: the writer produces them, every replica pulls them.

use super::{Chain, PlaneState, WriteError, Writes};
use crate::block::BlockPlan;
use crate::net::AppId;
use crate::pull::Puller;
use crate::topology::NodeId;
use crate::wire::elided_data;
use bytes::Bytes;
use ndn_endpoint::{
    Answer, Consumer, ConsumerConfig, Producer, ProducerConfig, State, VerifyPolicy,
};
use ndn_packet::{Data, Name, NetKind, NetPacket, PitToken};
use std::time::Duration;

/// What an application is in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Producer,
    /// The consumer of the replica at this place.
    Consumer(u32),
}

/// The named half of a chain.
#[derive(Debug)]
pub(super) struct Named {
    app: AppId,
    producer: Producer<Option<PitToken>>,
    /// One for each replica, from when the header has come.
    pullers: Vec<Option<Puller>>,
}

impl Named {
    pub(super) fn apps(&self) -> Vec<AppId> {
        let pullers = self.pullers.iter().flatten().map(|p| p.app);
        pullers.chain([self.app]).collect()
    }

    pub(super) fn retransmitted(&self) -> u64 {
        let pullers = self.pullers.iter().flatten();
        pullers.map(|p| p.core.stats().retransmitted).sum()
    }
}

impl Chain {
    fn named(&mut self) -> Option<&mut Named> {
        match &mut self.plane {
            PlaneState::Named(named) => Some(named),
            PlaneState::Tcp(_) => None,
        }
    }
}

impl Writes<'_> {
    fn add_app(&mut self, node: NodeId, id: u32, role: Role) -> AppId {
        let app = self.net.add_app(node);
        debug_assert_eq!(app.0 as usize, self.app_of.len());
        self.app_of.push((id, role));
        app
    }

    /// The writer makes the block's name known.
    pub(super) fn begin_named(&mut self, id: u32, plan: &BlockPlan, name: &Name) -> Named {
        let app = self.add_app(plan.writer, id, Role::Producer);
        self.net.register(app, name);
        for &replica in &plan.replicas {
            self.net.announce(name, replica, &[plan.writer]);
        }
        Named {
            app,
            producer: Producer::new(ProducerConfig {
                retain_segments: self.config.retain,
                retain_bytes: usize::MAX,
                ..ProducerConfig::new(name.clone())
            }),
            pullers: plan.replicas.iter().map(|_| None).collect(),
        }
    }

    /// The header has come to a replica: it begins to ask. Over TCP there is nothing to open.
    pub(super) fn open_replica(&mut self, id: u32, at: usize) {
        let Some(chain) = self.chain(id) else {
            return;
        };
        let (node, name) = (chain.plan.replicas[at], chain.name.clone());
        if chain.named().is_none() {
            return;
        }
        let app = self.add_app(node, id, Role::Consumer(at as u32));
        let now = self.net.now();
        let config = ConsumerConfig {
            congestion: self.config.congestion.clone(),
            give_up_after: Duration::from_secs(300),
            max_buffered_segments: self.config.buffered,
            no_route_wait: Duration::from_millis(10),
            live: true,
            last: Some(self.config.segments() - 1),
            verify: VerifyPolicy::None,
            seed: crate::net::mix(self.seed, u64::from(app.0)),
            ..ConsumerConfig::new(name)
        };
        let puller = Puller::new(app, Consumer::new(config, now));
        if let Some(named) = self.chain(id).and_then(Chain::named) {
            named.pullers[at] = Some(puller);
        }
        self.ask(id, at);
    }

    /// The writer publishes a segment: who waits for it gets it.
    pub(super) fn publish_named(&mut self, id: u32, segment: u64) {
        let now = self.net.now();
        let content = self.config.cut.segment_header + self.config.body(segment);
        let Some(chain) = self.chain(id) else {
            return;
        };
        let wire = elided_data(&chain.name.append_segment(segment), content, None);
        let Some(named) = chain.named() else {
            return;
        };
        let (app, mut answers) = (named.app, Vec::new());
        // Segments are published once each, in order.
        let published = named.producer.publish(now, segment, wire, &mut answers);
        debug_assert!(published.is_ok(), "{published:?}");
        for (token, wire) in answers {
            self.answer(app, wire, token);
        }
    }

    fn answer(&mut self, app: AppId, wire: Bytes, token: Option<PitToken>) {
        if let Ok(data) = Data::parse(wire) {
            self.net
                .send(app, NetPacket::data(data).with_pit_token(token));
        }
    }

    pub(super) fn on_packet(&mut self, app: AppId, packet: NetPacket) -> Result<(), WriteError> {
        let now = self.net.now();
        let (id, role) = self.app_of[app.0 as usize];
        let Some(named) = self.chain(id).and_then(Chain::named) else {
            return Ok(());
        };
        match role {
            Role::Producer => {
                let token = packet.pit_token;
                let NetKind::Interest(interest) = packet.packet else {
                    return Ok(());
                };
                match named.producer.on_interest(now, &interest, token) {
                    Answer::Data(wire) => self.answer(app, wire, token),
                    Answer::Waits => {}
                    Answer::Nack(reason) => self
                        .net
                        .send(app, NetPacket::nack(reason, interest).with_pit_token(token)),
                }
                Ok(())
            }
            Role::Consumer(at) => {
                let at = at as usize;
                if let Some(puller) = &mut named.pullers[at] {
                    puller.receive(now, packet);
                }
                self.take(id, at);
                self.check(id, at)
            }
        }
    }

    /// A record has come: its segment surely exists, and may be taken.
    pub(super) fn on_record(&mut self, id: u32, at: usize, segment: u64) {
        let now = self.net.now();
        let named = self.chain(id).and_then(Chain::named);
        if let Some(puller) = named.and_then(|named| named.pullers[at].as_mut()) {
            puller.core.known_produced(now, segment);
        }
        self.take(id, at);
    }

    /// Takes in order what has come of what records were for, passes it on, and asks for more.
    fn take(&mut self, id: u32, at: usize) {
        loop {
            let Some(chain) = self.chain(id) else {
                return;
            };
            let stage = chain.stages[at];
            if stage.taken >= stage.records {
                break;
            }
            let named = chain.named();
            let Some(puller) = named.and_then(|named| named.pullers[at].as_mut()) else {
                break;
            };
            let Some((segment, _)) = puller.core.read() else {
                break;
            };
            chain.stages[at].taken = segment + 1;
            self.pass_on(id, at, segment);
        }
        self.ask(id, at);
    }

    /// Sends what a replica's consumer wants asked, and keeps its timer.
    fn ask(&mut self, id: u32, at: usize) {
        let chain = self.chains.get_mut(id as usize).and_then(Option::as_mut);
        let named = chain.and_then(Chain::named);
        if let Some(puller) = named.and_then(|named| named.pullers[at].as_mut()) {
            puller.ask(&mut self.net);
        }
    }

    pub(super) fn on_consumer_timer(&mut self, app: AppId) -> Result<(), WriteError> {
        let now = self.net.now();
        let (id, Role::Consumer(at)) = self.app_of[app.0 as usize] else {
            return Ok(());
        };
        let named = self.chain(id).and_then(Chain::named);
        let puller = named.and_then(|named| named.pullers[at as usize].as_mut());
        if puller.is_some_and(|puller| puller.on_timer(now)) {
            self.ask(id, at as usize);
            return self.check(id, at as usize);
        }
        Ok(())
    }

    /// A replica that gives up ends the run: its cause is worth more than the figures of the others.
    fn check(&mut self, id: u32, at: usize) -> Result<(), WriteError> {
        let topology = self.net.topology();
        let Some(chain) = self.chain(id) else {
            return Ok(());
        };
        let host = chain.plan.replicas[at];
        let named = chain.named();
        let Some(puller) = named.and_then(|named| named.pullers[at].as_ref()) else {
            return Ok(());
        };
        match puller.core.state() {
            State::Failed(reason) => Err(WriteError::Failed {
                block: id as usize,
                host: topology.node(host).name.clone(),
                cause: reason.to_string(),
            }),
            _ => Ok(()),
        }
    }
}
