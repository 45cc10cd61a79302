//! What sockets of all families have in common: connecting without waiting, buffers, accepting.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, SockAddr, Socket};

/// Connections waiting to be accepted.
const BACKLOG: i32 = 1024;

/// Begins to connect a non-blocking socket; [`connected`] tells what comes of it.
pub(crate) fn connect(socket: &Socket, peer: &SockAddr) -> io::Result<()> {
    match socket.connect(peer) {
        Ok(()) => Ok(()),
        Err(error)
            if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Whether a connection that was begun has come about: `None` while it is under way.
pub(crate) fn connected(socket: &Socket) -> Option<io::Result<()>> {
    match socket.take_error() {
        Ok(Some(error)) | Err(error) => return Some(Err(error)),
        Ok(None) => {}
    }
    match socket.peer_addr() {
        // On loopback a port that nobody listens on can be the one that the system has just
        // given to the socket itself.
        Ok(peer) if is_self(socket, &peer) => {
            Some(Err(io::Error::from(io::ErrorKind::ConnectionRefused)))
        }
        Ok(_) => Some(Ok(())),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => None,
        Err(error) => Some(Err(error)),
    }
}

fn is_self(socket: &Socket, peer: &SockAddr) -> bool {
    peer.as_socket().is_some_and(|peer| {
        socket
            .local_addr()
            .is_ok_and(|own| own.as_socket() == Some(peer))
    })
}

/// The lower bits of the byte that a code point stands in are for congestion notification (RFC 3168).
const ECN_BITS: u32 = 2;

/// Marks what an IP socket sends; of a listener, what those sockets send that it accepts. Where the system refuses,
/// they go without, the log says so once, and the status of faces shows it.
pub(crate) fn mark(socket: &Socket, dscp: Option<u8>, what: &str) {
    let Some(dscp) = dscp else { return };
    let byte = u32::from(dscp) << ECN_BITS;
    let set = match socket.domain() {
        Ok(Domain::IPV6) => socket.set_tclass_v6(byte),
        Ok(_) => socket.set_tos_v4(byte),
        Err(error) => Err(error),
    };
    static TOLD: AtomicBool = AtomicBool::new(false);
    if let Err(error) = set
        && !TOLD.swap(true, Ordering::Relaxed)
    {
        tracing::warn!(%error, dscp, "{what} goes without a mark");
    }
}

/// How what an IP socket sends is marked; `None` for a socket of another family.
pub(crate) fn dscp(socket: &Socket) -> Option<u8> {
    let byte = match socket.domain().ok()? {
        Domain::IPV4 => socket.tos_v4().ok()?,
        Domain::IPV6 => socket.tclass_v6().ok()?,
        _ => return None,
    };
    u8::try_from(byte >> ECN_BITS).ok()
}

/// Lets peers connect to a bound socket.
pub(crate) fn listen(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)
}

/// Asks for kernel buffers (0 leaves the system's) and says, once, where the system grants less.
pub(crate) fn set_buffers(socket: &Socket, bytes: usize, what: &str) {
    if bytes == 0 {
        return;
    }
    static TOLD: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
    for (name, sysctl, told, set, get) in [
        (
            "receive",
            "net.core.rmem_max",
            &TOLD[0],
            Socket::set_recv_buffer_size as fn(&Socket, usize) -> io::Result<()>,
            Socket::recv_buffer_size as fn(&Socket) -> io::Result<usize>,
        ),
        (
            "send",
            "net.core.wmem_max",
            &TOLD[1],
            Socket::set_send_buffer_size,
            Socket::send_buffer_size,
        ),
    ] {
        if let Err(error) = set(socket, bytes) {
            tracing::warn!(%error, "cannot set the {name} buffer of {what}");
        }
        // The kernel reports twice what it grants: half of it is its own bookkeeping.
        let granted = get(socket).map_or(0, |doubled| doubled / 2);
        if granted < bytes && !told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                asked_bytes = bytes,
                granted_bytes = granted,
                "the {name} buffer of {what} is smaller than asked; set `sysctl {sysctl}={bytes}`"
            );
        }
    }
}
