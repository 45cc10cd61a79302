//! The socket under TLS: bytes in and out without waiting, and whether there may be more.

use std::io::{self, IoSlice, Read};

use rustix::net::{SendAncillaryBuffer, SendFlags};
use socket2::Socket;

/// A non-blocking stream socket whose events are edge-triggered.
pub(super) struct Wire {
    pub socket: Socket,
    /// There may be something to read (until a read says no).
    pub readable: bool,
    writable: bool,
    /// The peer will send nothing more.
    hung_up: bool,
}

impl Wire {
    pub fn new(socket: Socket) -> Self {
        Self {
            socket,
            readable: true,
            writable: true,
            hung_up: false,
        }
    }

    pub fn on_event(&mut self, event: &mio::event::Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.writable |= event.is_writable();
        self.hung_up |= event.is_read_closed() || event.is_error();
    }

    #[cfg(test)]
    pub fn writable_again(&mut self) {
        self.writable = true;
    }

    /// Reads what there is; 0 where nothing is now.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.readable {
            match (&self.socket).read(buf) {
                Ok(0) => return Err(closed()),
                Ok(n) => {
                    // A short read has emptied the socket; what comes later is a new event. Not so the end of the
                    // stream, which may have come already.
                    self.readable = n == buf.len() || self.hung_up;
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    /// Writes what the socket takes; 0 where it takes nothing now. `more` says that more follows at once.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&mut self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        flags.set(SendFlags::MORE, more);
        while self.writable {
            let mut control = SendAncillaryBuffer::default();
            match rustix::net::sendmsg(&self.socket, slices, &mut control, flags) {
                Ok(n) => return Ok(n),
                Err(rustix::io::Errno::AGAIN) => self.writable = false,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }
}

/// The peer has ended the connection.
pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the peer")
}
