//! Packets that other threads have for a loop: the way from a JVM thread or a
//! worker into the forwarder.

use std::sync::{Mutex, OnceLock, PoisonError};

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
        let mut queue = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
        let before = queue.len();
        queue.extend(packets);
        let grown = queue.len() > before;
        drop(queue);
        if grown {
            self.wake();
        }
    }

    /// Wakes the application.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Moves all packets to the loop.
    pub fn drain(&self, out: &mut Vec<NetPacket>) {
        out.append(&mut self.packets.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
