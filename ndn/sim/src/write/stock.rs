//! A chain's segments over TCP: each replica sends on what it has received.

use super::stream::Stream;
use super::{Chain, Message, PlaneState, WriteConfig, Writes};
use crate::net::ConnId;

/// The TCP half of a chain: a stream into each replica.
#[derive(Debug)]
pub(super) struct Stock {
    streams: Vec<Stream>,
}

impl Stock {
    pub(super) fn new(replicas: usize, config: &WriteConfig) -> Self {
        Stock {
            streams: (0..replicas)
                .map(|_| Stream::new(config.tcp_window))
                .collect(),
        }
    }

    pub(super) fn retransmitted(&self) -> u64 {
        self.streams.iter().map(|stream| stream.retransmitted).sum()
    }
}

impl Chain {
    fn stream(&mut self, at: usize) -> Option<&mut Stream> {
        match &mut self.plane {
            PlaneState::Tcp(stock) => stock.streams.get_mut(at),
            PlaneState::Named(_) => None,
        }
    }

    /// Segments that may go into the stage at `at`: what the writer gave out, or what the one above has.
    fn available(&self, at: usize) -> u64 {
        match at {
            0 => self.published,
            _ => self.stages[at - 1].taken,
        }
    }
}

impl Writes<'_> {
    fn unit_bytes(&self, segment: u64) -> u64 {
        self.config.cut.packet_header + self.config.body(segment)
    }

    fn send_unit(&mut self, conn: ConnId, segment: u64) {
        let bytes = self.net.wire().bytes(self.unit_bytes(segment));
        let tag = Message::Segment(segment).tag();
        self.net.send_train(conn, bytes, tag);
    }

    /// Sends into a stage what its stream lets out.
    pub(super) fn pump(&mut self, id: u32, at: usize) {
        let now = self.net.now();
        loop {
            let Some(chain) = self.chain(id) else {
                return;
            };
            let (available, conn) = (chain.available(at), chain.conns[at]);
            let segment = chain.stream(at).and_then(|s| s.next(now, available));
            let Some(segment) = segment else {
                break;
            };
            self.send_unit(conn, segment);
        }
        self.keep_timer(id, at);
    }

    fn keep_timer(&mut self, id: u32, at: usize) {
        let Some(stream) = self.chain(id).and_then(|chain| chain.stream(at)) else {
            return;
        };
        let deadline = stream.deadline();
        let earlier = deadline.filter(|at| stream.timer.is_none_or(|timer| *at < timer));
        if let Some(deadline) = earlier {
            stream.timer = Some(deadline);
            self.net
                .set_timer(deadline, u64::from(id) << 32 | at as u64);
        }
    }

    pub(super) fn on_stream_timer(&mut self, id: u32, at: usize) {
        let now = self.net.now();
        let stream = self.chain(id).and_then(|chain| chain.stream(at));
        if let Some(stream) = stream.filter(|s| s.timer.is_some_and(|timer| timer <= now)) {
            stream.timer = None;
            stream.on_deadline(now);
            self.pump(id, at);
        }
    }

    /// A segment has come to a replica.
    pub(super) fn on_train(&mut self, id: u32, at: usize, segment: u64) {
        let acks = self.net.wire().ack_bytes(self.unit_bytes(segment));
        let Some(chain) = self.chain(id) else {
            return;
        };
        let conn = chain.conns[at];
        let Some(came) = chain.stream(at).map(|stream| stream.receive(segment)) else {
            return;
        };
        let first = std::mem::replace(&mut chain.stages[at].taken, came);
        let tag = Message::Arrived(segment).tag();
        self.net.send_message(conn, false, acks, tag);
        for segment in first..came {
            self.pass_on(id, at, segment);
        }
    }

    /// A segment that was sent into a stage has been answered.
    pub(super) fn on_train_acked(&mut self, id: u32, at: usize, segment: u64) {
        let now = self.net.now();
        if let Some(stream) = self.chain(id).and_then(|chain| chain.stream(at)) {
            stream.on_answer(now, segment);
            self.pump(id, at);
        }
    }
}
