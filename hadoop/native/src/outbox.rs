//! Packets that other threads have for a loop: the way from a JVM thread or a
//! worker into the forwarder.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ndn_io::AppWaker;
use ndn_packet::NetPacket;

/// Where an application keeps what other threads want sent. The application
/// empties it in `on_wake`.
#[derive(Default)]
pub(crate) struct Outbox {
    packets: Mutex<Vec<NetPacket>>,
    waker: OnceLock<AppWaker>,
}

impl Outbox {
    /// Says how the application is woken. Called once, when it is attached.
    pub fn attach(&self, waker: AppWaker) {
        let _ = self.waker.set(waker);
    }

    /// Hands packets over and wakes the application.
    pub fn send(&self, packets: impl IntoIterator<Item = NetPacket>) {
        self.put(packets);
        self.flush();
    }

    /// Hands packets over that may wait for the next [`Outbox::flush`].
    pub fn put(&self, packets: impl IntoIterator<Item = NetPacket>) {
        self.lock().extend(packets);
    }

    /// Wakes the application if there are packets for it.
    pub fn flush(&self) {
        let waiting = !self.lock().is_empty();
        if waiting {
            self.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<NetPacket>> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the application.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Moves all packets to the loop.
    pub fn drain(&self, out: &mut Vec<NetPacket>) {
        out.append(&mut self.lock());
    }
}
