//! One dataset of a forwarder, all of its segments.

use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::{
    Consumer, ConsumerConfig, Exchange, ExchangeConfig, ExchangeError, VerifyPolicy,
};
use ndn_io::{App, Client};
use ndn_packet::{Component, Data, Interest, NackReason, Name, NetKind, NetPacket};

use crate::error::CliError;
use crate::forwarder;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// Fetches a dataset, all of its segments.
///
/// # Errors
/// There is no answer, or the forwarder went away.
pub fn read(client: &mut Client, name: &Name) -> Result<Vec<u8>, CliError> {
    tracing::debug!(%name, face = %client.uri(), "asking");
    let mut app = Reading::new(name.clone(), client.now());
    client
        .run(&mut app, |app| app.over.is_some())
        .map_err(|e| forwarder::client_error(client.uri(), &e))?;
    app.over
        .unwrap_or(Err(Silence::Timeout))
        .map_err(|e| e.error(client, name))
}

/// Why there is no answer.
#[derive(Debug)]
enum Silence {
    Timeout,
    Nack(NackReason),
    Stream(String),
}

impl Silence {
    fn error(&self, client: &Client, name: &Name) -> CliError {
        let cause = match self {
            Silence::Timeout => format!("no answer to {name} within {PATIENCE:?}"),
            Silence::Nack(reason) => format!("{name} was refused ({reason})"),
            Silence::Stream(said) => said.clone(),
        };
        forwarder::no_answer(client.uri(), cause)
    }
}

/// A dataset: its first segment by prefix, the others by number.
struct Reading {
    phase: Phase,
    content: Vec<u8>,
    over: Option<Result<Vec<u8>, Silence>>,
}

enum Phase {
    First(Box<Exchange>),
    Others(Box<Consumer>),
}

impl Reading {
    fn new(name: Name, now: Duration) -> Self {
        let question = ExchangeConfig {
            can_be_prefix: true,
            must_be_fresh: true,
            timeout: PATIENCE,
            max_nacks: 1,
            verify: VerifyPolicy::None,
            seed: forwarder::seed(),
            ..ExchangeConfig::new(name)
        };
        Reading {
            phase: Phase::First(Box::new(Exchange::new(question, now))),
            content: Vec::new(),
            over: None,
        }
    }

    fn turn(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        if let Phase::First(exchange) = &self.phase {
            match exchange.result() {
                None => {}
                Some(Err(ExchangeError::Nack { reason, .. })) => {
                    self.over = Some(Err(Silence::Nack(*reason)))
                }
                Some(Err(_)) => self.over = Some(Err(Silence::Timeout)),
                Some(Ok(first)) => {
                    self.content.extend_from_slice(first.content_slice());
                    match first
                        .final_block_id()
                        .as_ref()
                        .and_then(Component::as_segment)
                    {
                        Some(last) if last > 0 => {
                            self.phase = Phase::Others(Box::new(others(first, last, now)))
                        }
                        _ => self.over = Some(Ok(std::mem::take(&mut self.content))),
                    }
                }
            }
        }
        if let Phase::Others(consumer) = &mut self.phase {
            while let Some((_, data)) = consumer.read() {
                self.content.extend_from_slice(data.content_slice());
            }
            if consumer.is_done() {
                self.over = Some(Ok(std::mem::take(&mut self.content)));
            } else if let Some(reason) = consumer.failure() {
                self.over = Some(Err(Silence::Stream(reason.to_string())));
            }
        }
        while let Some(wire) = self.poll_interest(now) {
            out.extend(Interest::parse(wire).ok().map(NetPacket::interest));
        }
    }

    fn poll_interest(&mut self, now: Duration) -> Option<Bytes> {
        match &mut self.phase {
            Phase::First(exchange) => exchange.poll_interest(now),
            Phase::Others(consumer) => consumer.poll_interest(now),
        }
    }
}

fn others(first: &Data, last: u64, now: Duration) -> Consumer {
    let config = ConsumerConfig {
        first: 1,
        last: Some(last),
        give_up_after: PATIENCE,
        verify: VerifyPolicy::None,
        seed: forwarder::seed(),
        ..ConsumerConfig::new(first.name().parent().to_name())
    };
    Consumer::new(config, now)
}

impl App for Reading {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        match (packet.packet, &mut self.phase) {
            (NetKind::Data(data), Phase::First(exchange)) => {
                exchange.on_data(data);
            }
            (NetKind::Data(data), Phase::Others(consumer)) => {
                consumer.on_data(now, data, false);
            }
            (NetKind::Nack { reason, interest }, Phase::First(exchange)) => {
                exchange.on_nack(now, &interest, reason)
            }
            (NetKind::Nack { reason, interest }, Phase::Others(consumer)) => {
                consumer.on_nack(now, &interest, reason)
            }
            (NetKind::Interest(_), _) => {}
        }
        self.turn(now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.turn(now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::First(exchange) => exchange.deadline(),
            Phase::Others(consumer) => consumer.deadline(),
        }
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        match &mut self.phase {
            Phase::First(exchange) => exchange.on_deadline(now),
            Phase::Others(consumer) => consumer.on_deadline(now),
        }
        self.turn(now, out);
    }
}
