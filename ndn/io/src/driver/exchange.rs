//! What the loops of one node have for each other, where its forwarder has several workers.
//!
//! Each loop has a queue that all others put batches into, without a lock. What a loop has put there and nobody has taken
//! yet counts as that loop's outputs: while it is much, the loop reads no more of its faces, and what comes beyond its
//! bound is dropped and counted by its worker.

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

/// Parcels that go together.
struct Batch {
    parcels: Vec<Parcel>,
    bytes: usize,
    from: usize,
}

/// The ways into all loops.
pub(crate) struct Exchange {
    loops: Vec<Inbox>,
    /// Bytes of a loop in others' queues from which on it reads no more of its faces.
    limit: usize,
}

/// The way into one loop.
struct Inbox {
    sender: mpsc::Sender<Batch>,
    /// Batches that are in the queue, or about to be.
    pending: AtomicUsize,
    /// Bytes that this loop has put into others' queues and that are there yet.
    under_way: AtomicUsize,
    /// What wakes the loop, once it is there.
    shared: OnceLock<Arc<Shared>>,
}

impl Exchange {
    /// An exchange for so many loops, with an end for each. A loop with so many bytes in others' queues is to read no more
    /// of its faces.
    pub fn between(loops: usize, limit: usize) -> Vec<Desk> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..loops).map(|_| mpsc::channel()).unzip();
        let inbox = |sender| Inbox {
            sender,
            pending: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            shared: OnceLock::new(),
        };
        let exchange = Arc::new(Exchange {
            loops: senders.into_iter().map(inbox).collect(),
            limit,
        });
        let desk = |(number, receiver)| Desk {
            exchange: exchange.clone(),
            number,
            receiver,
            outgoing: (0..loops).map(|_| Vec::new()).collect(),
        };
        receivers.into_iter().enumerate().map(desk).collect()
    }

    fn wake(&self, number: usize) {
        if let Some(shared) = self.loops[number].shared.get() {
            shared.wake();
        }
    }
}

/// One loop's end of the exchange.
pub(crate) struct Desk {
    exchange: Arc<Exchange>,
    number: usize,
    receiver: mpsc::Receiver<Batch>,
    /// What is to be put into the queue of each loop.
    outgoing: Vec<Vec<Parcel>>,
}

impl Desk {
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
        let _ = self.exchange.loops[self.number].shared.set(shared);
    }

    /// Has another loop get something with the next [`Desk::dispatch`].
    pub fn put(&mut self, to: usize, parcel: Parcel) {
        self.outgoing[to].push(parcel);
    }

    /// Puts what there is into the other loops' queues. The first worker's comes last: what it makes known because of it
    /// reaches the others after it.
    pub fn dispatch(&mut self) {
        for to in (0..self.outgoing.len()).rev() {
            if self.outgoing[to].is_empty() {
                continue;
            }
            let parcels = std::mem::take(&mut self.outgoing[to]);
            let packets = parcels.iter().map(Parcel::bytes).sum::<usize>();
            let bytes = packets + parcels.capacity() * size_of::<Parcel>();
            let own = &self.exchange.loops[self.number];
            own.under_way.fetch_add(bytes, Ordering::SeqCst);
            let inbox = &self.exchange.loops[to];
            // Before the batch is there: the loop looks at it when it goes to sleep, and must not miss one.
            inbox.pending.fetch_add(1, Ordering::SeqCst);
            let batch = Batch {
                parcels,
                bytes,
                from: self.number,
            };
            // Fails only where that loop has ended, and with it the node.
            let _ = inbox.sender.send(batch);
            self.exchange.wake(to);
        }
    }

    /// Batches in this loop's queue.
    pub fn pending(&self) -> usize {
        self.exchange.loops[self.number]
            .pending
            .load(Ordering::SeqCst)
    }

    /// Takes a batch out of this loop's queue.
    pub fn take(&mut self) -> Option<Vec<Parcel>> {
        let batch = self.receiver.try_recv().ok()?;
        let inbox = &self.exchange.loops[self.number];
        inbox.pending.fetch_sub(1, Ordering::SeqCst);
        let sender = &self.exchange.loops[batch.from].under_way;
        let before = sender.fetch_sub(batch.bytes, Ordering::SeqCst);
        let limit = self.exchange.limit;
        if before >= limit && before - batch.bytes < limit {
            // It may have stopped reading for that.
            self.exchange.wake(batch.from);
        }
        Some(batch.parcels)
    }

    /// Bytes of this loop that other loops have not taken yet.
    pub fn under_way(&self) -> usize {
        self.exchange.loops[self.number]
            .under_way
            .load(Ordering::SeqCst)
    }

    /// Whether this loop may read more of its faces.
    pub fn has_room(&self) -> bool {
        self.under_way() < self.exchange.limit
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
        assert_eq!((desks[0].pending(), desks[1].pending()), (2, 0));
        assert!(desks[1].under_way() >= 20 * size_of::<Parcel>());
        for to in [0, 2] {
            let mut got = Vec::new();
            while let Some(parcels) = desks[to].take() {
                got.extend(parcels.into_iter().map(|parcel| match parcel {
                    Parcel::Destroy(face) => face.0,
                    _ => panic!("another parcel"),
                }));
            }
            assert_eq!(got, (0..10).collect::<Vec<_>>());
        }
        assert_eq!((desks[0].pending(), desks[1].under_way()), (0, 0));
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
            if shared.may_sleep() && receiver.pending() == 0 {
                let patience = Some(Duration::from_secs(60));
                poll.poll(&mut events, patience).expect("a poll");
                assert!(!events.is_empty(), "asleep with {got} of {BATCHES}");
            }
            shared.awake();
            while let Some(parcels) = receiver.take() {
                got += parcels.len() as u64;
            }
        }
        let sender = sending.join().expect("a thread");
        assert_eq!((sender.under_way(), receiver.pending()), (0, 0));
    }
}
