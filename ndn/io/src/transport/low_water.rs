//! How many bytes a TCP socket has before its reader is woken: `SO_RCVLOWAT` of socket(7).
//!
//! A packet of 64 KiB comes in dozens of segments, and nothing can be done with a part of it. Each part that wakes the
//! loop costs a wait, a read and a look at all that there is to do.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// As a socket begins: any byte wakes.
const ANY: usize = 1;

/// Below that a part has mostly come by the time that it is waited for.
const LEAST: usize = 2048;

/// Half of the receive buffer that a socket begins with (`tcp_rmem`): for more the kernel would change the buffer.
const MOST: usize = 64 << 10;

/// Has whoever waits for a TCP socket woken when so many bytes have come, or no more can; at once where they are there
/// already. It is woken sooner where the kernel has no room for them: it takes no more than half of the receive buffer
/// where its size is fixed, else of the most in `tcp_rmem`.
///
/// # Errors
/// It is no socket.
pub fn set_low_water(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    // SAFETY: the descriptor is open while it is borrowed; the kernel reads an int of that length.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The mark of one connection.
#[derive(Debug)]
pub(crate) struct LowWater(usize);

impl LowWater {
    pub const fn new() -> Self {
        Self(ANY)
    }

    /// All that has come is read, and nothing can be done with what comes before so many bytes of it are there.
    ///
    /// # Errors
    /// The mark is higher and can't be lowered: nobody would be woken.
    pub fn expect(&mut self, socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
        let wanted = if bytes < LEAST { ANY } else { bytes.min(MOST) };
        if wanted == self.0 {
            return Ok(());
        }
        match set_low_water(socket, wanted as i32) {
            Ok(()) => self.0 = wanted,
            Err(_) if self.0 == ANY => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (to, listener.accept().unwrap().0)
    }

    /// An edge-triggered wait, as the loop's.
    struct Edges(mio::Poll);

    impl Edges {
        fn of(socket: &TcpStream) -> Self {
            let poll = mio::Poll::new().unwrap();
            let fd = socket.as_raw_fd();
            let source = &mut mio::unix::SourceFd(&fd);
            let reads = mio::Interest::READABLE;
            poll.registry()
                .register(source, mio::Token(0), reads)
                .unwrap();
            Self(poll)
        }

        fn woken(&mut self, wait: Duration) -> bool {
            let mut events = mio::Events::with_capacity(8);
            self.0.poll(&mut events, Some(wait)).unwrap();
            events.iter().any(mio::event::Event::is_readable)
        }

        fn stays_asleep(&mut self) -> bool {
            !self.woken(Duration::from_millis(100))
        }

        fn wakes(&mut self) -> bool {
            self.woken(Duration::from_secs(60))
        }
    }

    #[test]
    fn a_loop_is_woken_when_all_of_it_has_come() {
        let (mut to, mut from) = pair();
        let mut edges = Edges::of(&from);
        let mut mark = LowWater::new();
        let mut read = vec![0; 100_000];
        to.write_all(&[1; 100]).unwrap();
        assert!(edges.wakes(), "any byte, to begin with");
        assert_eq!(from.read(&mut read).unwrap(), 100);
        mark.expect(from.as_fd(), 10_000).unwrap();
        to.write_all(&[1; 9_999]).unwrap();
        assert!(edges.stays_asleep(), "woken by a part");
        to.write_all(&[1]).unwrap();
        assert!(edges.wakes());
        assert_eq!(from.read(&mut read).unwrap(), 10_000);
        mark.expect(from.as_fd(), LEAST - 1).unwrap();
        to.write_all(&[1]).unwrap();
        assert!(edges.wakes(), "any byte again");
    }

    /// What came between the last read and a lower mark was below the mark of then: no other event would tell of it.
    #[test]
    fn what_is_there_when_the_mark_is_lowered_wakes() {
        let (mut to, from) = pair();
        let mut edges = Edges::of(&from);
        let mut mark = LowWater::new();
        mark.expect(from.as_fd(), 50_000).unwrap();
        to.write_all(&[1; 5_000]).unwrap();
        assert!(edges.stays_asleep());
        mark.expect(from.as_fd(), 3_000).unwrap();
        assert!(edges.wakes());
    }

    #[test]
    fn the_end_wakes_whatever_the_mark() {
        let (to, from) = pair();
        let mut edges = Edges::of(&from);
        LowWater::new().expect(from.as_fd(), MOST).unwrap();
        drop(to);
        assert!(edges.wakes());
    }

    /// As much as the sender may send at all, which is less than is waited for.
    #[test]
    fn a_full_receive_buffer_wakes() {
        let (mut to, from) = pair();
        let buffer = socket2::SockRef::from(&from);
        buffer.set_recv_buffer_size(2304).unwrap();
        let mut edges = Edges::of(&from);
        LowWater::new().expect(from.as_fd(), MOST).unwrap();
        to.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(n) = to.write(&[1; 1000]) {
            sent += n;
        }
        assert!(sent > 0);
        assert!(edges.wakes());
    }

    #[test]
    fn a_mark_that_cannot_be_lowered_is_told() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(LowWater::new().expect(file.as_fd(), MOST).is_ok());
        assert!(LowWater(MOST).expect(file.as_fd(), 1).is_err());
    }
}
