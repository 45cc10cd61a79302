//! How much the kernel still holds of what a socket was given.
//!
//! A socket's buffer takes megabytes before a face's own queue begins to grow. What waits there
//! waits as long as what is queued here, so congestion is marked by both together, as NFD does.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::ioctl::{Getter, Opcode, ioctl};

/// Bytes of a socket's send buffer in use: all that a peer's process (Unix) or the network
/// interface (UDP) has not taken. `SIOCOUTQ` of `linux/sockios.h`.
const SIOCOUTQ: Opcode = 0x5411;
/// Bytes that TCP has not sent yet; what is under way is the congestion control's affair.
/// `SIOCOUTQNSD` of `linux/sockios.h`.
const SIOCOUTQNSD: Opcode = 0x894b;

/// Bytes that a Unix or UDP socket has not passed on; 0 where the system does not tell.
pub(crate) fn untaken(socket: BorrowedFd<'_>) -> usize {
    // SAFETY: SIOCOUTQ writes one int.
    let asked = unsafe { ioctl(socket, Getter::<SIOCOUTQ, i32>::new()) };
    asked.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
}

/// Bytes that a TCP socket has not sent; 0 where the system does not tell.
pub(crate) fn unsent(socket: BorrowedFd<'_>) -> usize {
    // SAFETY: SIOCOUTQNSD writes one int.
    let asked = unsafe { ioctl(socket, Getter::<SIOCOUTQNSD, i32>::new()) };
    asked.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
}

/// The most that the kernel can hold for a face; what it does hold is asked only where that could
/// make a difference, and once a round.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    most: usize,
    asked_at: Option<Duration>,
}

impl Backlog {
    /// The kernel has taken `bytes`.
    pub fn wrote(&mut self, bytes: usize) {
        self.most = self.most.saturating_add(bytes);
    }

    /// Bytes that wait in all where `queued` wait in the face's own queue. Exact, as far as
    /// `ask` tells what the kernel holds, where the sum is above `threshold`.
    pub fn total(
        &mut self,
        now: Duration,
        queued: usize,
        threshold: usize,
        ask: impl FnOnce() -> usize,
    ) -> usize {
        if queued.saturating_add(self.most) > threshold && self.asked_at != Some(now) {
            self.most = ask();
            self.asked_at = Some(now);
        }
        queued.saturating_add(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_only_where_it_matters() {
        let mut backlog = Backlog::default();
        let never = || panic!("asked");
        let ms = Duration::from_millis;
        backlog.wrote(700);
        assert_eq!(backlog.total(ms(1), 200, 1000, never), 900);
        assert_eq!(backlog.total(ms(1), 400, 1000, || 650), 1050);
        assert_eq!(backlog.total(ms(1), 500, 1000, never), 1150, "once a round");
        assert_eq!(backlog.total(ms(2), 500, 1000, || 100), 600);
        backlog.wrote(50);
        assert_eq!(backlog.total(ms(2), 800, 1000, never), 950);
    }
}
