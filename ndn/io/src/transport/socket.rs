//! Making sockets: options, binding, connecting, and Unix paths that others left behind.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use crate::uri::{FaceUri, unspecified};

/// A peer that is gone without a word is noticed after about half a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Bytes that the kernel takes from us before TCP can send them. What is beyond waits in the
/// face's own queue, where it is seen, marked and bounded.
const UNSENT_BYTES: u32 = 512 * 1024;
/// Connections waiting to be accepted.
const BACKLOG: i32 = 1024;

/// Where a stream leads, names resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamPeer {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl StreamPeer {
    /// Resolves where it needs to, which blocks.
    pub fn resolve(uri: &FaceUri) -> io::Result<Self> {
        match uri {
            FaceUri::Unix(path) => Ok(Self::Unix(path.clone())),
            FaceUri::Tcp(endpoint) => endpoint.resolve().map(Self::Tcp),
            FaceUri::Udp(_) => Err(no_stream()),
        }
    }

    /// Never blocks: `None` for a name.
    pub fn literal(uri: &FaceUri) -> Option<Self> {
        match uri {
            FaceUri::Unix(path) => Some(Self::Unix(path.clone())),
            FaceUri::Tcp(endpoint) => endpoint.literal().map(Self::Tcp),
            FaceUri::Udp(_) => None,
        }
    }
}

/// Starts connecting a stream socket, without waiting. True where it is connected already.
pub(crate) fn connect_stream(
    peer: &StreamPeer,
    local: Option<IpAddr>,
    buffer_bytes: usize,
) -> io::Result<(Socket, bool)> {
    match peer {
        StreamPeer::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            tune_stream(&socket, true, buffer_bytes)?;
            connect(&socket, &SockAddr::unix(path)?).map(|done| (socket, done))
        }
        StreamPeer::Tcp(peer) => {
            let domain = Domain::for_address(*peer);
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            tune_stream(&socket, false, buffer_bytes)?;
            if let Some(local) = local {
                socket.bind(&SocketAddr::new(local, 0).into())?;
            }
            connect(&socket, &(*peer).into()).map(|done| (socket, done))
        }
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

fn no_stream() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "UDP is no stream")
}

fn connect(socket: &Socket, peer: &SockAddr) -> io::Result<bool> {
    match socket.connect(peer) {
        Ok(()) => Ok(true),
        Err(error)
            if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Options that every stream socket gets, connected or accepted.
pub(crate) fn tune_stream(socket: &Socket, unix: bool, buffer_bytes: usize) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    if unix {
        set_buffers(socket, buffer_bytes, "a Unix face");
        return Ok(());
    }
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(KEEPALIVE_IDLE)
            .with_interval(KEEPALIVE_INTERVAL)
            .with_retries(KEEPALIVE_PROBES),
    )
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

/// Opens a listening stream socket.
pub(crate) fn listen_stream(uri: &FaceUri, unix_mode: Option<u32>) -> io::Result<Socket> {
    let socket = match uri {
        FaceUri::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            remove_stale(path)?;
            socket.bind(&SockAddr::unix(path)?)?;
            if let Some(mode) = unix_mode {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
            }
            socket
        }
        FaceUri::Tcp(endpoint) => {
            let address = endpoint.resolve()?;
            let socket = Socket::new(
                Domain::for_address(address),
                Type::STREAM,
                Some(Protocol::TCP),
            )?;
            socket.set_reuse_address(true)?;
            if address.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.bind(&address.into())?;
            socket
        }
        FaceUri::Udp(_) => return Err(no_stream()),
    };
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Opens the sockets of a multicast face: one that hears the group, and one to speak from.
/// What is spoken is heard by other processes of this host, and by oneself.
pub(crate) fn multicast(
    group: SocketAddr,
    local: Option<IpAddr>,
    buffer_bytes: usize,
) -> io::Result<(Socket, Socket)> {
    let local = match local {
        Some(local) => local,
        // The address that the routing table takes toward the group.
        None => connect_udp(group, None, 0)?
            .local_addr()?
            .as_socket()
            .map_or_else(|| unspecified(&group).ip(), |address| address.ip()),
    };
    let hear = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    hear.set_reuse_address(true)?;
    hear.set_nonblocking(true)?;
    set_buffers(&hear, buffer_bytes, "a multicast face");
    hear.bind(&group.into())?;
    let speak = bind_udp(SocketAddr::new(local, 0), buffer_bytes)?;
    match (group.ip(), local) {
        (IpAddr::V4(group), IpAddr::V4(local)) => {
            hear.join_multicast_v4(&group, &local)?;
            speak.set_multicast_if_v4(&local)?;
            speak.set_multicast_loop_v4(true)?;
        }
        (IpAddr::V6(group), IpAddr::V6(_)) => {
            hear.join_multicast_v6(&group, 0)?;
            speak.set_multicast_loop_v6(true)?;
        }
        _ => return Err(io::Error::from(io::ErrorKind::AddrNotAvailable)),
    }
    Ok((hear, speak))
}

/// Opens an unconnected UDP socket at `local`.
pub(crate) fn bind_udp(local: SocketAddr, buffer_bytes: usize) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    if local.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    set_buffers(&socket, buffer_bytes, "a UDP face");
    socket.bind(&local.into())?;
    Ok(socket)
}

/// Opens a UDP socket that speaks to `peer` alone.
pub(crate) fn connect_udp(
    peer: SocketAddr,
    local: Option<IpAddr>,
    buffer_bytes: usize,
) -> io::Result<Socket> {
    let local = local.map_or_else(|| unspecified(&peer), |ip| SocketAddr::new(ip, 0));
    let socket = bind_udp(local, buffer_bytes)?;
    socket.connect(&peer.into())?;
    Ok(socket)
}

/// A socket file at `path` that nobody listens on is removed; a live one is an error.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something that is no socket has this path; move it away, or choose another path",
        ));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "removed a socket that a dead process left");
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        // Connected, or would have to wait: somebody is alive there.
        _ => Err(io::Error::from(io::ErrorKind::AddrInUse)),
    }
}
