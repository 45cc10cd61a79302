//! Applications in the process of the loop that drives them: faces without a socket.

use std::time::Duration;

use ndn_packet::NetPacket;

/// An application driven by a node's (or a client's) loop.
///
/// All calls come from the loop's thread, one at a time, and must not block: whatever they
/// spend, every other face waits for. What an application appends to `out` enters the
/// forwarder in that order, as if it had come over a face. `now` is the loop's own clock, the
/// one that deadlines are told in.
pub trait App: Send {
    /// A packet for the application.
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>);

    /// [`AppHandle::wake`](crate::AppHandle::wake) was called since the last call.
    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let _ = (now, out);
    }

    /// When to call [`App::on_deadline`] next, if ever. Asked after every other call.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// The deadline has come.
    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let _ = (now, out);
    }
}
