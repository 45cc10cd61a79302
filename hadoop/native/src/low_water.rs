//! How many bytes a TCP socket has before its reader is woken: SO_RCVLOWAT (socket(7)), which Java
//! has no name for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

/// The socket's own descriptor could be closed, and given to another socket, while it is used here,
/// so this has one of its own. Until it is dropped the connection stays.
pub struct LowWater(OwnedFd);

impl LowWater {
    /// Of the socket that a descriptor stands for now; whoever calls makes sure afterwards that it
    /// still does.
    pub fn of(socket: RawFd) -> io::Result<LowWater> {
        if socket < 0 {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        // SAFETY: not -1, and not used beyond this call, which answers EBADF for what is not open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(socket) };
        borrowed.try_clone_to_owned().map(LowWater)
    }

    /// The reader is woken when this many bytes have come: [`ndn_io::set_low_water`].
    pub fn set(&self, bytes: i32) -> io::Result<()> {
        ndn_io::set_low_water(self.0.as_fd(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::LowWater;

    #[test]
    fn a_reader_is_woken_when_all_of_it_has_come() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut from, _) = listener.accept().unwrap();
        let low_water = LowWater::of(from.as_raw_fd()).unwrap();
        low_water.set(10_000).unwrap();
        let mut read = vec![0; 20_000];
        to.write_all(&[1; 9_999]).unwrap();
        assert_eq!(wait(&from), 0, "woken by a part");
        to.write_all(&[1]).unwrap();
        assert_eq!(wait(&from), 1, "not woken by all");
        assert_eq!(from.read(&mut read).unwrap(), 10_000);
        low_water.set(1).unwrap();
        to.write_all(&[2]).unwrap();
        assert_eq!(from.read(&mut read).unwrap(), 1);
    }

    /// Sockets of which poll says within a while that they can be read.
    fn wait(socket: &TcpStream) -> i32 {
        let mut poll = libc::pollfd {
            fd: socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, which lives as long as the call.
        unsafe { libc::poll(&raw mut poll, 1, 200) }
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        assert!(LowWater::of(-1).is_err());
        assert!(LowWater::of(i32::MAX).is_err());
        let file = std::fs::File::open("/dev/null").unwrap();
        let low_water = LowWater::of(file.as_raw_fd()).unwrap();
        assert_eq!(
            low_water.set(1).unwrap_err().raw_os_error(),
            Some(libc::ENOTSOCK)
        );
    }
}
