//! What the loops of one node have for each other, where its forwarder has several workers.
//!
//! Each loop has two queues that all others put batches into, without a lock: one for packets, of each of which many may
//! come, and one for parcels, of which nothing comes: what is to be sent, and changes of state. What a loop has put there
//! and nobody has taken yet counts as that loop's outputs. While it is much the loop reads no more of its faces; while its
//! parcels are, it takes no more packets of others; what comes beyond its bound is dropped and counted by its worker.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};

use ndn_forwarder::{FaceId, FaceSpec, Message, UpdateFace};
use ndn_packet::{Data, NetPacket};

use super::shared::{Command, Shared};
use crate::config::LinkOptions;
use crate::face::budget::Share;
use crate::face::io::StreamIo;

/// Something that one loop has for another.
pub(crate) enum Parcel {
    /// For its worker.
    Message(Message),
    /// A packet for one of its faces.
    Send(FaceId, NetPacket),
    /// Data was too large for one of its faces.
    TooLarge(FaceId, Data),
    /// A peer that is to have its face there.
    Adopt(Box<Adopted>),
    /// A face to close.
    Destroy(FaceId),
    /// A face to change.
    Update(Box<UpdateFace>),
    /// A face has gone that had come in at the listener in this slot.
    Left(usize, Option<IpAddr>),
}

/// A peer that has connected to a listener of the first loop.
pub(crate) struct Adopted {
    pub spec: FaceSpec,
    pub io: Box<dyn StreamIo>,
    pub link: LinkOptions,
    /// What its face takes of the memory for faces.
    pub cost: Share,
    /// Slot of its listener.
    pub listener: usize,
    pub address: Option<IpAddr>,
}

impl Parcel {
    /// Bytes beside itself.
    fn bytes(&self) -> usize {
        match self {
            Parcel::Message(message) => message.packet_bytes(),
            Parcel::Send(_, packet) => packet.wire().len(),
            Parcel::TooLarge(_, data) => data.wire().len(),
            _ => 0,
        }
    }
}

/// What goes together.
struct Batch<T> {
    contents: Vec<T>,
    bytes: usize,
    from: usize,
}

/// A queue that all other loops put batches into.
struct Lane<T> {
    sender: mpsc::Sender<Batch<T>>,
    /// Batches that are in the queue, or about to be.
    pending: AtomicUsize,
}

impl<T> Lane<T> {
    fn new() -> (Self, mpsc::Receiver<Batch<T>>) {
        let (sender, receiver) = mpsc::channel();
        let pending = AtomicUsize::new(0);
        (Self { sender, pending }, receiver)
    }

    fn put(&self, batch: Batch<T>) {
        // Before the batch is there: the loop looks at it when it goes to sleep, and must not miss one.
        self.pending.fetch_add(1, Ordering::SeqCst);
        // Fails only where that loop has ended, and with it the node.
        let _ = self.sender.send(batch);
    }

    fn take(&self, receiver: &mpsc::Receiver<Batch<T>>) -> Option<Batch<T>> {
        let batch = receiver.try_recv().ok()?;
        self.pending.fetch_sub(1, Ordering::SeqCst);
        Some(batch)
    }

    fn pending(&self) -> usize {
        self.pending.load(Ordering::SeqCst)
    }
}

/// The way into one loop.
struct Inbox {
    parcels: Lane<Parcel>,
    packets: Lane<Message>,
    /// Bytes that this loop has put into others' queues and that are there yet.
    under_way: AtomicUsize,
    /// Those of them that are parcels.
    parcels_under_way: AtomicUsize,
    /// What wakes the loop, once it is there.
    shared: OnceLock<Arc<Shared>>,
}

/// The ways into all loops.
pub(crate) struct Exchange {
    loops: Vec<Inbox>,
    /// Bytes of a loop in others' queues from which on it brings no more.
    limit: usize,
}

impl Exchange {
    /// An exchange for so many loops, with an end for each. A loop with so many bytes in others' queues is to bring no
    /// more.
    pub fn between(loops: usize, limit: usize) -> Vec<Desk> {
        let mut ends = Vec::new();
        let inboxes = (0..loops).map(|_| {
            let (parcels, from_parcels) = Lane::new();
            let (packets, from_packets) = Lane::new();
            ends.push((from_parcels, from_packets));
            Inbox {
                parcels,
                packets,
                under_way: AtomicUsize::new(0),
                parcels_under_way: AtomicUsize::new(0),
                shared: OnceLock::new(),
            }
        });
        let exchange = Arc::new(Exchange {
            loops: inboxes.collect(),
            limit,
        });
        let desk = |(number, (parcels, packets))| Desk {
            exchange: exchange.clone(),
            number,
            parcels,
            packets,
            outgoing: (0..loops).map(|_| (Vec::new(), Vec::new())).collect(),
        };
        ends.into_iter().enumerate().map(desk).collect()
    }

    fn wake(&self, number: usize) {
        if let Some(shared) = self.loops[number].shared.get() {
            shared.wake();
        }
    }

    /// So many bytes of a loop have been taken. Where it may bring more again, it is woken.
    fn taken(&self, from: usize, bytes: usize, counter: &AtomicUsize) {
        let before = counter.fetch_sub(bytes, Ordering::SeqCst);
        if before >= self.limit && before - bytes < self.limit {
            self.wake(from);
        }
    }
}

/// One loop's end of the exchange.
pub(crate) struct Desk {
    exchange: Arc<Exchange>,
    number: usize,
    parcels: mpsc::Receiver<Batch<Parcel>>,
    packets: mpsc::Receiver<Batch<Message>>,
    /// What is to be put into the queues of each loop.
    outgoing: Vec<(Vec<Parcel>, Vec<Message>)>,
}

impl Desk {
    fn own(&self) -> &Inbox {
        &self.exchange.loops[self.number]
    }

    /// Which loop this is.
    pub fn number(&self) -> usize {
        self.number
    }

    /// How many there are.
    pub fn loops(&self) -> usize {
        self.exchange.loops.len()
    }

    /// Says what wakes this loop.
    pub fn set_shared(&self, shared: Arc<Shared>) {
        // It is set once, when the loop is made.
        let _ = self.own().shared.set(shared);
    }

    /// Has another loop get something with the next [`Desk::dispatch`].
    pub fn put(&mut self, to: usize, parcel: Parcel) {
        match parcel {
            Parcel::Message(message) if message.face().is_some() => {
                self.outgoing[to].1.push(message);
            }
            parcel => self.outgoing[to].0.push(parcel),
        }
    }

    /// Puts what there is into the other loops' queues. The first worker's comes last: what it makes known because of it
    /// reaches the others after it.
    pub fn dispatch(&mut self) {
        for to in (0..self.outgoing.len()).rev() {
            let (parcels, packets) = &mut self.outgoing[to];
            if parcels.is_empty() && packets.is_empty() {
                continue;
            }
            let (parcels, packets) = (std::mem::take(parcels), std::mem::take(packets));
            let (own, inbox) = (self.own(), &self.exchange.loops[to]);
            let from = self.number;
            if !parcels.is_empty() {
                let beside: usize = parcels.iter().map(Parcel::bytes).sum();
                let bytes = beside + parcels.capacity() * size_of::<Parcel>();
                own.under_way.fetch_add(bytes, Ordering::SeqCst);
                own.parcels_under_way.fetch_add(bytes, Ordering::SeqCst);
                inbox.parcels.put(Batch {
                    contents: parcels,
                    bytes,
                    from,
                });
            }
            if !packets.is_empty() {
                let bytes = packets.iter().map(Message::bytes).sum();
                own.under_way.fetch_add(bytes, Ordering::SeqCst);
                inbox.packets.put(Batch {
                    contents: packets,
                    bytes,
                    from,
                });
            }
            self.exchange.wake(to);
        }
    }

    /// Batches of parcels that have come.
    pub fn parcels(&self) -> usize {
        self.own().parcels.pending()
    }

    /// Batches of packets that have come.
    pub fn packets(&self) -> usize {
        self.own().packets.pending()
    }

    /// Takes parcels that have come.
    pub fn take_parcels(&mut self) -> Option<Vec<Parcel>> {
        let batch = self.own().parcels.take(&self.parcels)?;
        let sender = &self.exchange.loops[batch.from];
        let counters = [&sender.under_way, &sender.parcels_under_way];
        for counter in counters {
            self.exchange.taken(batch.from, batch.bytes, counter);
        }
        Some(batch.contents)
    }

    /// Takes packets that have come, and the number of the loop that they are from, for which they count as under way until
    /// [`Desk::give_back`]. What was put before them, parcels too, is there to be taken then.
    pub fn take_packets(&mut self) -> Option<(usize, Vec<Message>)> {
        let batch = self.own().packets.take(&self.packets)?;
        Some((batch.from, batch.contents))
    }

    /// So many bytes of packets of a loop are done with.
    pub fn give_back(&self, from: usize, bytes: usize) {
        let counter = &self.exchange.loops[from].under_way;
        self.exchange.taken(from, bytes, counter);
    }

    /// Bytes of this loop that other loops have not taken yet.
    pub fn under_way(&self) -> usize {
        self.own().under_way.load(Ordering::SeqCst)
    }

    /// Whether this loop may read its faces.
    pub fn has_room(&self) -> bool {
        self.under_way() < self.exchange.limit
    }

    /// Whether this loop may take packets of others. They wait for parcels alone, which all loops take at any time: so no
    /// two loops wait for each other.
    pub fn has_room_for_answers(&self) -> bool {
        self.own().parcels_under_way.load(Ordering::SeqCst) < self.exchange.limit
    }

    /// This loop has ended: so do the others, since it had a part of all names.
    pub fn end_all(&self) {
        for inbox in &self.exchange.loops {
            if let Some(shared) = inbox.shared.get() {
                shared.push(Command::Shutdown);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::shared::poll_and_shared;
    use std::time::Duration;

    fn destroy(n: u64) -> Parcel {
        Parcel::Destroy(FaceId(n))
    }

    #[test]
    fn parcels_keep_their_order_and_are_counted_until_taken() {
        let mut desks = Exchange::between(3, 1 << 20);
        for n in 0..10 {
            desks[1].put(0, destroy(n));
            desks[1].put(2, destroy(n));
            if n == 4 {
                desks[1].dispatch();
            }
        }
        desks[1].dispatch();
        assert_eq!((desks[0].parcels(), desks[1].parcels()), (2, 0));
        assert!(desks[1].under_way() >= 20 * size_of::<Parcel>());
        for to in [0, 2] {
            let mut got = Vec::new();
            while let Some(parcels) = desks[to].take_parcels() {
                got.extend(parcels.into_iter().map(|parcel| match parcel {
                    Parcel::Destroy(face) => face.0,
                    _ => panic!("another parcel"),
                }));
            }
            assert_eq!(got, (0..10).collect::<Vec<_>>());
        }
        assert_eq!((desks[0].parcels(), desks[1].under_way()), (0, 0));
    }

    /// A loop that goes to sleep while others put batches into its queue misses none.
    #[test]
    fn a_sleeping_loop_is_woken() {
        const BATCHES: u64 = 20_000;
        let mut desks = Exchange::between(2, 1 << 20);
        let (mut poll, shared) = poll_and_shared(mio::Token(0)).expect("a poll");
        desks[0].set_shared(shared.clone());
        let mut sender = desks.pop().expect("two desks");
        let mut receiver = desks.pop().expect("two desks");
        let sending = std::thread::spawn(move || {
            for n in 0..BATCHES {
                sender.put(0, destroy(n));
                sender.dispatch();
                if n % 64 == 0 {
                    std::thread::yield_now();
                }
            }
            sender
        });
        let mut events = mio::Events::with_capacity(4);
        let mut got = 0;
        while got < BATCHES {
            if shared.may_sleep() && receiver.parcels() == 0 {
                let patience = Some(Duration::from_secs(60));
                poll.poll(&mut events, patience).expect("a poll");
                assert!(!events.is_empty(), "asleep with {got} of {BATCHES}");
            }
            shared.awake();
            while let Some(parcels) = receiver.take_parcels() {
                got += parcels.len() as u64;
            }
        }
        let sender = sending.join().expect("a thread");
        assert_eq!((sender.under_way(), receiver.parcels()), (0, 0));
    }
}
