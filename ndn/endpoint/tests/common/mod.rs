//! A small simulated network in front of the endpoints: consumers, one bottleneck each way, one source. Deterministic.
#![allow(dead_code, reason = "each test program uses its part")]

mod link;
pub mod packets;
pub mod reader;
mod stream;

pub use link::{Link, LinkState};
use reader::Reader;
pub use stream::{Stream, content_byte};

use bytes::Bytes;
use ndn_endpoint::{
    AimdConfig, Answer, CongestionControlFactory, Consumer, ConsumerConfig, CubicConfig,
    FixedConfig, Producer, ProducerConfig,
};
use ndn_packet::{Data, Interest, NackReason, Name};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

pub const SEGMENT_BYTES: u32 = 8000;

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub type Congestion = Arc<dyn CongestionControlFactory>;

pub fn cubic() -> Congestion {
    Arc::new(CubicConfig::default())
}

pub fn aimd() -> Congestion {
    Arc::new(AimdConfig::default())
}

pub fn fixed_window(segments: usize) -> Congestion {
    Arc::new(FixedConfig::new(segments))
}

pub fn prefix() -> Name {
    "/hadoop/blocks/BP-1/7/v=1001".parse().expect("a name")
}

/// A consumer's defaults for these tests: the first of the stream, last unknown.
pub fn config() -> ConsumerConfig {
    ConsumerConfig {
        seed: 7,
        ..ConsumerConfig::new(prefix())
    }
}

/// Who answers Interests.
pub enum Source {
    /// Every segment lies ready.
    Ready(Stream),
    /// Segments appear one after the other; `told` after `lag` the consumers hear of each.
    Live {
        stream: Stream,
        producer: Box<Producer<usize>>,
        next: u64,
        every: Duration,
        told_after: Option<Duration>,
    },
}

/// Times during which nobody answers: in silence, or with Nacks.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    pub from: Duration,
    pub to: Duration,
    pub nack: Option<NackReason>,
}

enum Event {
    Interest {
        consumer: usize,
        wire: Bytes,
    },
    Data {
        consumer: usize,
        wire: Bytes,
        marked: bool,
    },
    Nack {
        consumer: usize,
        wire: Bytes,
        reason: NackReason,
    },
    Produce,
    Told {
        upto: u64,
    },
    Start {
        consumer: usize,
    },
}

pub struct World {
    pub now: Duration,
    pub up: LinkState,
    pub down: LinkState,
    pub readers: Vec<Reader>,
    pub source: Source,
    pub outages: Vec<Outage>,
    /// Every how many-th Data has a byte changed on its way; 0 for none.
    pub corrupt_every: u64,
    pub interests_seen: u64,
    data_sent: u64,
    events: BinaryHeap<Reverse<(Duration, u64)>>,
    waiting: BTreeMap<u64, Event>,
    counter: u64,
}

impl World {
    pub fn new(source: Source, link: Link, seed: u64) -> Self {
        let mut world = Self {
            now: Duration::ZERO,
            up: LinkState::new(link.without_rate(), seed ^ 1),
            down: LinkState::new(link, seed ^ 2),
            readers: Vec::new(),
            source,
            outages: Vec::new(),
            corrupt_every: 0,
            interests_seen: 0,
            data_sent: 0,
            events: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            counter: 0,
        };
        if let Source::Live { every, .. } = world.source {
            world.at(every, Event::Produce);
        }
        world
    }

    pub fn ready(segments: u64, link: Link, seed: u64) -> Self {
        Self::new(
            Source::Ready(Stream::new(segments, SEGMENT_BYTES)),
            link,
            seed,
        )
    }

    pub fn live(
        segments: u64,
        every: Duration,
        told_after: Option<Duration>,
        link: Link,
        seed: u64,
    ) -> Self {
        let producer = Box::new(Producer::new(ProducerConfig::new(prefix())));
        let stream = Stream::new(segments, SEGMENT_BYTES);
        Self::new(
            Source::Live {
                stream,
                producer,
                next: 0,
                every,
                told_after,
            },
            link,
            seed,
        )
    }

    pub fn add(&mut self, config: ConsumerConfig, start: Duration) -> usize {
        self.readers.push(Reader {
            consumer: Consumer::new(config, start),
            started: false,
            read: Vec::new(),
            bytes: 0,
            progress: Vec::new(),
            most_buffered: 0,
            done_at: None,
            beyond: 0,
            reading: true,
        });
        let consumer = self.readers.len() - 1;
        self.at(start, Event::Start { consumer });
        consumer
    }

    fn at(&mut self, time: Duration, event: Event) {
        self.counter += 1;
        self.events.push(Reverse((time, self.counter)));
        self.waiting.insert(self.counter, event);
    }

    /// Runs until every consumer is over or `limit` is reached; gives the time.
    pub fn run(&mut self, limit: Duration) -> Duration {
        while self.step(limit) {}
        self.now
    }

    fn step(&mut self, limit: Duration) -> bool {
        if self
            .readers
            .iter()
            .all(|r| r.consumer.is_done() || r.consumer.failure().is_some())
        {
            return false;
        }
        let event = self.events.peek().map(|Reverse((time, _))| *time);
        let started = self.readers.iter().filter(|r| r.started);
        let deadline = started.filter_map(|r| r.consumer.deadline()).min();
        let next = [event, deadline].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= limit) else {
            return false;
        };
        self.now = self.now.max(next);
        if event == Some(next) {
            let Some(Reverse((_, id))) = self.events.pop() else {
                return false;
            };
            let event = self.waiting.remove(&id).expect("each event is stored");
            self.handle(event);
        } else {
            for index in 0..self.readers.len() {
                let Reader {
                    consumer, started, ..
                } = &mut self.readers[index];
                if *started && consumer.deadline().is_some_and(|at| at <= next) {
                    consumer.on_deadline(self.now);
                    assert!(
                        consumer.deadline().is_none_or(|at| at > self.now),
                        "a deadline must move on"
                    );
                    self.drive(index);
                }
            }
        }
        true
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Start { consumer } => {
                self.readers[consumer].started = true;
                self.drive(consumer);
            }
            Event::Interest { consumer, wire } => self.serve(consumer, wire),
            Event::Data {
                consumer,
                wire,
                marked,
            } => {
                if let Ok(data) = Data::parse(wire) {
                    self.readers[consumer].consumer.on_data(now, data, marked);
                    self.drive(consumer);
                }
            }
            Event::Nack {
                consumer,
                wire,
                reason,
            } => {
                let interest = Interest::parse(wire).expect("one of ours");
                self.readers[consumer]
                    .consumer
                    .on_nack(now, &interest, reason);
                self.drive(consumer);
            }
            Event::Produce => self.produce(),
            Event::Told { upto } => {
                for index in 0..self.readers.len() {
                    self.readers[index].consumer.known_produced(now, upto);
                    self.drive(index);
                }
            }
        }
    }

    /// Sends what a consumer wants sent and reads what it has to read.
    pub fn drive(&mut self, index: usize) {
        let now = self.now;
        loop {
            let reader = &mut self.readers[index];
            if !reader.started {
                return;
            }
            reader.most_buffered = reader.most_buffered.max(reader.consumer.stats().buffered);
            while reader.reading
                && let Some((segment, data)) = reader.consumer.read()
            {
                let start = segment * u64::from(SEGMENT_BYTES);
                let whole = data
                    .content()
                    .iter()
                    .zip(start..)
                    .all(|(&byte, at)| byte == content_byte(at));
                assert!(whole, "segment {segment} has wrong bytes");
                reader.read.push(segment);
                reader.bytes += data.content().len() as u64;
                reader.progress.push((now, reader.bytes));
            }
            if reader.consumer.is_done() {
                reader.done_at.get_or_insert(now);
            }
            let before = reader.consumer.stats();
            let Some(packet) = reader.consumer.poll_interest(now) else {
                return;
            };
            let wire = packet.wire().clone();
            reader.beyond += u64::from(before.outstanding - before.early >= before.window);
            assert!(
                reader.beyond <= before.timeouts,
                "no more than the window, but for one Interest after a timeout: {before:?}"
            );
            for (arrival, _) in self.up.carry(now, wire.len()) {
                self.at(
                    arrival,
                    Event::Interest {
                        consumer: index,
                        wire: wire.clone(),
                    },
                );
            }
        }
    }

    fn serve(&mut self, consumer: usize, wire: Bytes) {
        self.interests_seen += 1;
        let now = self.now;
        let outage = self
            .outages
            .iter()
            .find(|o| o.from <= now && now < o.to)
            .copied();
        if let Some(outage) = outage {
            if let Some(reason) = outage.nack {
                for (arrival, _) in self.down.carry(now, wire.len()) {
                    self.at(
                        arrival,
                        Event::Nack {
                            consumer,
                            wire: wire.clone(),
                            reason,
                        },
                    );
                }
            }
            return;
        }
        let interest = Interest::parse(wire.clone()).expect("one of ours");
        let answer = match &mut self.source {
            Source::Ready(stream) => {
                let asked = interest
                    .name()
                    .last()
                    .and_then(|c| c.as_segment())
                    .expect("a segment");
                if asked > stream.last() {
                    Answer::Nack(NackReason::NoRoute)
                } else {
                    Answer::Data(stream.wire(asked))
                }
            }
            Source::Live { producer, .. } => producer.on_interest(now, &interest, consumer),
        };
        match answer {
            Answer::Data(data) => self.send_data(consumer, data),
            Answer::Waits => {}
            Answer::Nack(reason) => {
                for (arrival, _) in self.down.carry(now, wire.len()) {
                    self.at(
                        arrival,
                        Event::Nack {
                            consumer,
                            wire: wire.clone(),
                            reason,
                        },
                    );
                }
            }
        }
    }

    fn send_data(&mut self, consumer: usize, mut wire: Bytes) {
        self.data_sent += 1;
        if self.corrupt_every > 0 && self.data_sent.is_multiple_of(self.corrupt_every) {
            let mut bytes = wire.to_vec();
            let at = bytes.len() / 2;
            bytes[at] ^= 0x10;
            wire = bytes.into();
        }
        for (arrival, marked) in self.down.carry(self.now, wire.len()) {
            self.at(
                arrival,
                Event::Data {
                    consumer,
                    wire: wire.clone(),
                    marked,
                },
            );
        }
    }

    fn produce(&mut self) {
        let now = self.now;
        let Source::Live {
            stream,
            producer,
            next,
            every,
            told_after,
        } = &mut self.source
        else {
            return;
        };
        let (segment, every, told_after) = (*next, *every, *told_after);
        let mut answers = Vec::new();
        let wire = stream.wire(segment);
        producer
            .publish(now, segment, wire, &mut answers)
            .expect("in order");
        *next += 1;
        let more = *next <= stream.last();
        let dark = self.outages.iter().any(|o| o.from <= now && now < o.to);
        for (consumer, data) in answers {
            if !dark {
                self.send_data(consumer, data);
            }
        }
        if let Some(lag) = told_after {
            self.at(now + lag, Event::Told { upto: segment });
        }
        if more {
            self.at(now + every, Event::Produce);
        }
    }
}
