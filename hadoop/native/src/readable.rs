//! Waits for one socket by poll(2): an epoll, which is what Java's selectors are, is told of the
//! socket before each wait and told to forget it afterwards.

use std::io;
use std::os::fd::RawFd;

/// Whether a descriptor can be read without waiting within so many milliseconds: bytes, the end or
/// an error are there, or nothing is open by that number. A signal ends the wait early.
pub fn within(socket: RawFd, timeout_ms: i32) -> io::Result<bool> {
    let mut poll = libc::pollfd {
        fd: socket,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which lives as long as the call; poll says so itself of what is not open.
    let ready = unsafe { libc::poll(&raw mut poll, 1, timeout_ms) };
    match ready {
        -1 => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                Ok(false)
            } else {
                Err(error)
            }
        }
        count => Ok(count > 0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::thread;
    use std::time::Duration;

    use super::within;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (to, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_and_the_end_can_be_read_and_nothing_can_not() {
        let (mut to, from) = pair();
        assert!(!within(from.as_raw_fd(), 1).unwrap());
        let later = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            to.write_all(&[1]).unwrap();
        });
        assert!(within(from.as_raw_fd(), 60_000).unwrap());
        later.join().unwrap();
        let (to, from) = pair();
        drop(to);
        assert!(within(from.as_raw_fd(), 60_000).unwrap());
    }

    #[test]
    fn what_is_not_open_is_not_waited_for() {
        assert!(within(i32::MAX, 60_000).unwrap());
    }
}
