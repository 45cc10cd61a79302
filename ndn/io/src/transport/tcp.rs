//! TCP: `tcp://host:port`, `tcp4://…`, `tcp6://…`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::config::{FaceConfig, ListenConfig};
use crate::face::io::StreamIo;
use crate::transport::conn::Conn;
use crate::transport::socket;
use crate::transport::{Accepted, Acceptor, Scheme, StreamTransport};
use crate::uri::{Address, DEFAULT_PORT, Endpoint, FaceUri, is_loopback};

/// A peer that is gone without a word is noticed after about half a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Bytes that the kernel takes from us before TCP can send them. What is beyond waits in the
/// face's own queue, where it is seen, marked and bounded.
const UNSENT_BYTES: u32 = 512 * 1024;

/// The face type.
pub(crate) struct Tcp;

impl Scheme for Tcp {
    fn schemes(&self) -> &'static [&'static str] {
        &["tcp", "tcp4", "tcp6"]
    }

    fn example(&self) -> &'static str {
        "tcp://host:port"
    }

    fn parse(&self, scheme: &str, rest: &str) -> Result<Address, String> {
        Endpoint::parse(scheme, rest, DEFAULT_PORT).map(Address::Endpoint)
    }

    fn is_local(&self, address: &Address) -> bool {
        address.endpoint().is_some_and(Endpoint::is_loopback)
    }
}

impl StreamTransport for Tcp {
    fn connect(&self, address: &Address, config: &FaceConfig) -> io::Result<Box<dyn StreamIo>> {
        let socket = connect(address, config)?;
        Ok(Box::new(Conn::new(socket, false)))
    }

    fn listen(&self, config: &ListenConfig) -> io::Result<Box<dyn Acceptor>> {
        let (socket, own) = listen(config)?;
        Ok(Box::new(TcpListener {
            socket,
            uri: FaceUri::tcp(own),
        }))
    }
}

/// A socket that begins to connect.
pub(super) fn connect(address: &Address, config: &FaceConfig) -> io::Result<Socket> {
    let peer = address.socket_addr()?;
    let socket = new_socket(&peer)?;
    tune(&socket)?;
    socket::mark(&socket, config.link.dscp, "a TCP face");
    if let Some(local) = config.local_bind {
        socket.bind(&SocketAddr::new(local, 0).into())?;
    }
    socket::connect(&socket, &peer.into())?;
    Ok(socket)
}

/// A socket that peers may connect to, and its address.
pub(super) fn listen(config: &ListenConfig) -> io::Result<(Socket, SocketAddr)> {
    let address = config.uri.address().socket_addr()?;
    let socket = new_socket(&address)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket::mark(&socket, config.link.dscp, "a TCP face");
    socket.bind(&address.into())?;
    socket::listen(&socket)?;
    let own = ip_address(socket.local_addr()?)?;
    Ok((socket, own))
}

/// A peer's socket, with the addresses of this end and of the peer.
///
/// # Errors
/// As of [`Acceptor::accept`].
pub(super) fn accept(listener: &Socket) -> io::Result<(Socket, SocketAddr, SocketAddr)> {
    let (socket, peer) = listener.accept()?;
    // What goes wrong from here on concerns this peer alone.
    let aborted = |_| io::Error::from(io::ErrorKind::ConnectionAborted);
    tune(&socket).map_err(aborted)?;
    let own = socket.local_addr().and_then(ip_address).map_err(aborted)?;
    let peer = ip_address(peer).map_err(aborted)?;
    Ok((socket, own, peer))
}

struct TcpListener {
    socket: Socket,
    uri: FaceUri,
}

impl Acceptor for TcpListener {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn uri(&self) -> FaceUri {
        self.uri.clone()
    }

    fn accept(&mut self) -> io::Result<Accepted> {
        let (socket, own, peer) = accept(&self.socket)?;
        Ok(Accepted {
            io: Box::new(Conn::new(socket, false)),
            is_up: true,
            address: Some(peer.ip()),
            remote_uri: FaceUri::tcp(peer).to_string(),
            local_uri: FaceUri::tcp(own).to_string(),
            // Who listens on all addresses has not said that whoever comes by loopback is to be trusted like the
            // host's own applications.
            is_local: is_loopback(&peer) && self.uri.is_on_this_host(),
        })
    }
}

fn new_socket(address: &SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(*address);
    Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
}

fn ip_address(address: socket2::SockAddr) -> io::Result<SocketAddr> {
    address
        .as_socket()
        .ok_or_else(|| io::Error::other("a TCP socket without an IP address"))
}

/// Options that every TCP socket gets, connected or accepted.
fn tune(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(KEEPALIVE_IDLE)
            .with_interval(KEEPALIVE_INTERVAL)
            .with_retries(KEEPALIVE_PROBES),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LinkOptions;

    fn uri(text: &str) -> FaceUri {
        FaceUri::parse(text).unwrap()
    }

    fn marked(dscp: Option<u8>) -> LinkOptions {
        LinkOptions {
            dscp,
            ..LinkOptions::default()
        }
    }

    /// Who connects and who listens mark what they send themselves.
    #[test]
    fn each_end_is_marked_as_it_was_told() {
        for address in ["tcp://127.0.0.1:0", "tcp://[::1]:0"] {
            let mut config = ListenConfig::new(uri(address));
            config.link = marked(Some(8));
            let mut listener = Tcp.listen(&config).unwrap();
            for dscp in [Some(18), None] {
                let mut config = FaceConfig::new(listener.uri());
                config.link = marked(dscp);
                let ours = Tcp.connect(config.uri.address(), &config).unwrap();
                let accepted = loop {
                    match listener.accept() {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        accepted => break accepted.unwrap(),
                    }
                };
                assert_eq!(ours.dscp(), dscp.or(Some(0)), "{address}");
                assert_eq!(accepted.io.dscp(), Some(8), "{address}");
            }
        }
    }
}
