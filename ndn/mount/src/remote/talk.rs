//! The loop's side of [`Network`](super::network::Network): takes orders, hands packets to whoever asked, and tells all of
//! them when there will be no more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ndn_endpoint::{Consumer, Exchange, Outcome};
use ndn_io::App;
use ndn_packet::{Data, Interest, NetKind, NetPacket};

use super::RemoteError;
use super::network::{Asker, Order, Orders, Reading};
use crate::handles::lock;

/// What is being asked for.
enum Asked {
    Question(Box<Exchange>, Asker),
    Stream(Box<Consumer>, Box<dyn Reading>),
}

/// All that is being asked for; driven by the node's loop.
pub struct Loop {
    orders: Arc<Mutex<Orders>>,
    asked: Vec<Asked>,
}

impl Asked {
    fn deadline(&self) -> Option<Duration> {
        match self {
            Asked::Question(exchange, _) => exchange.deadline(),
            Asked::Stream(consumer, _) => consumer.deadline(),
        }
    }

    /// Takes a packet; false where it is for others.
    fn on_data(&mut self, now: Duration, data: &Data, marked: bool) -> bool {
        match self {
            Asked::Question(exchange, _) => exchange.on_data(data.clone()),
            Asked::Stream(consumer, reading) if consumer.wants(data.name()) => {
                if consumer.on_data(now, data.clone(), marked) == Outcome::Accepted {
                    reading.heard();
                }
                true
            }
            Asked::Stream(..) => false,
        }
    }

    /// Hands on what has come, sends what may be sent; true when it is over.
    fn turn(&mut self, now: Duration, out: &mut Vec<NetPacket>) -> bool {
        let mut send = |wire| out.extend(Interest::parse(wire).ok().map(NetPacket::interest));
        match self {
            Asked::Question(exchange, asker) => {
                while let Some(wire) = exchange.poll_interest(now) {
                    send(wire);
                }
                let Some(result) = exchange.result() else {
                    return false;
                };
                asker.answer(match result {
                    Ok(data) => Ok(data.clone()),
                    Err(error) => Err(error.into()),
                });
                true
            }
            Asked::Stream(consumer, reading) => {
                while let Some((segment, data)) = consumer.read() {
                    if !reading.take(segment, &data) {
                        consumer.reject(segment);
                    }
                }
                let Some(wanted) = reading.wanted() else {
                    return true;
                };
                consumer.want_up_to(wanted);
                while let Some(wire) = consumer.poll_interest(now) {
                    send(wire);
                }
                if let Some(reason) = consumer.failure() {
                    reading.over(Err(reason.into()));
                    return true;
                }
                if consumer.is_done() {
                    reading.over(Ok(()));
                }
                consumer.is_done()
            }
        }
    }
}

impl Loop {
    /// Asks for nothing yet.
    pub fn new(orders: Arc<Mutex<Orders>>) -> Self {
        Self {
            orders,
            asked: Vec::new(),
        }
    }

    /// Ends all that is being asked for. Whoever asked a question sees that nobody answers any more.
    fn end(&mut self, error: &RemoteError) {
        let waiting = std::mem::take(&mut lock(&self.orders).waiting);
        let ordered = waiting.into_iter().filter_map(|order| match order {
            Order::Ask(..) => None,
            Order::Read(_, reading) => Some(reading),
        });
        let asked = self.asked.drain(..).filter_map(|asked| match asked {
            Asked::Question(..) => None,
            Asked::Stream(_, reading) => Some(reading),
        });
        for mut reading in asked.chain(ordered) {
            reading.over(Err(error.clone()));
        }
    }

    /// Gives each of which `of` says so its turn.
    fn turn(
        &mut self,
        now: Duration,
        out: &mut Vec<NetPacket>,
        mut of: impl FnMut(&mut Asked) -> bool,
    ) {
        self.asked
            .retain_mut(|asked| !(of(asked) && asked.turn(now, out)));
    }
}

impl App for Loop {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let marked = packet.is_marked();
        match packet.packet {
            NetKind::Data(data) => {
                self.turn(now, out, |asked| asked.on_data(now, &data, marked));
            }
            NetKind::Nack { reason, interest } => self.turn(now, out, |asked| {
                match asked {
                    Asked::Question(exchange, _) => exchange.on_nack(now, &interest, reason),
                    Asked::Stream(consumer, _) => consumer.on_nack(now, &interest, reason),
                }
                true
            }),
            NetKind::Interest(_) => {}
        }
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let (waiting, over) = {
            let mut orders = lock(&self.orders);
            match &orders.over {
                Some(error) => (Vec::new(), Some(error.clone())),
                None => (std::mem::take(&mut orders.waiting), None),
            }
        };
        if let Some(error) = over {
            return self.end(&error);
        }
        self.asked
            .extend(waiting.into_iter().map(|order| match order {
                Order::Ask(config, asker) => {
                    Asked::Question(Box::new(Exchange::new(config, now)), asker)
                }
                Order::Read(config, reading) => {
                    Asked::Stream(Box::new(Consumer::new(config, now)), reading)
                }
            }));
        self.turn(now, out, |_| true);
    }

    fn deadline(&self) -> Option<Duration> {
        self.asked.iter().filter_map(Asked::deadline).min()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.turn(now, out, |asked| {
            let is_due = asked.deadline().is_some_and(|at| at <= now);
            if is_due {
                match asked {
                    Asked::Question(exchange, _) => exchange.on_deadline(now),
                    Asked::Stream(consumer, _) => consumer.on_deadline(now),
                }
            }
            is_due
        });
    }
}

/// The node's loop has ended, whyever: nobody is to wait for what it would have brought.
impl Drop for Loop {
    fn drop(&mut self) {
        let error = lock(&self.orders)
            .over
            .get_or_insert(RemoteError::Ended)
            .clone();
        self.end(&error);
    }
}
