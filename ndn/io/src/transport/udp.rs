//! UDP: `udp://host:port`, `udp4://…`, `udp6://…`, multicast groups among them. Sockets are read and
//! written in batches (recvmmsg, GRO, GSO by quinn-udp).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::{LinkOptions, ListenConfig};
use crate::face::backlog;
use crate::face::chunk::SmallFrames;
use crate::face::datagram_buffers::{BATCH, BUFFER_BYTES, DatagramBuffers};
use crate::face::io::DatagramIo;
use crate::transport::socket::{dscp, mark, set_buffers};
use crate::transport::{DatagramTransport, Opened, Scheme};
use crate::uri::{Address, DEFAULT_MULTICAST_PORT, DEFAULT_PORT, Endpoint, unspecified};

/// What arrives in a buffer is copied out of it up to this size.
const FREEZE_FROM: usize = BUFFER_BYTES / 4;
/// What a call and a datagram cost beside their bytes, in bytes that could be read meanwhile:
/// a flood of empty datagrams is to use its turn up as well.
const CALL_COST: usize = 4096;
const DATAGRAM_COST: usize = 256;

const _: () = assert!(BATCH <= BATCH_SIZE);

/// The face type.
pub(crate) struct Udp;

impl Scheme for Udp {
    fn schemes(&self) -> &'static [&'static str] {
        &["udp", "udp4", "udp6"]
    }

    fn example(&self) -> &'static str {
        "udp://host:port"
    }

    fn parse(&self, scheme: &str, rest: &str) -> Result<Address, String> {
        let endpoint = Endpoint::parse(scheme, rest, DEFAULT_PORT)?;
        let endpoint = if endpoint.is_multicast() {
            Endpoint::parse(scheme, rest, DEFAULT_MULTICAST_PORT)?
        } else {
            endpoint
        };
        Ok(Address::Endpoint(endpoint))
    }

    /// Anybody may write any sender into a datagram.
    fn is_local(&self, _: &Address) -> bool {
        false
    }
}

impl DatagramTransport for Udp {
    fn open(
        &self,
        address: &Address,
        local: Option<IpAddr>,
        link: &LinkOptions,
    ) -> io::Result<Opened> {
        let (peer, bytes) = (address.socket_addr()?, link.socket_buffer_bytes);
        if !peer.ip().is_multicast() {
            let port = Arc::new(UdpPort::new(connect(peer, local, bytes)?, link.dscp)?);
            return Ok(Opened {
                peer,
                hears: port.clone(),
                speaks: port,
            });
        }
        let (hears, speaks) = multicast(peer, local, bytes)?;
        Ok(Opened {
            peer,
            hears: Arc::new(UdpPort::new(hears, None)?),
            speaks: Arc::new(UdpPort::new(speaks, link.dscp)?),
        })
    }

    fn listen(&self, config: &ListenConfig) -> io::Result<Arc<dyn DatagramIo>> {
        let address = config.uri.address().socket_addr()?;
        let socket = bind(address, config.link.socket_buffer_bytes)?;
        Ok(Arc::new(UdpPort::new(socket, config.link.dscp)?))
    }
}

/// A UDP socket.
struct UdpPort {
    socket: Socket,
    state: UdpSocketState,
    is_marked: bool,
    /// The socket may have something to read.
    readable: AtomicBool,
    writable: AtomicBool,
}

impl UdpPort {
    fn new(socket: Socket, dscp: Option<u8>) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        mark(&socket, dscp, "a UDP face");
        Ok(Self {
            socket,
            state,
            is_marked: dscp.is_some(),
            readable: AtomicBool::new(false),
            writable: AtomicBool::new(true),
        })
    }
}

impl DatagramIo for UdpPort {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?;
        address
            .as_socket()
            .ok_or_else(|| io::Error::other("a UDP socket without an IP address"))
    }

    fn dscp(&self) -> Option<u8> {
        dscp(&self.socket)
    }

    fn max_batch(&self) -> usize {
        if self.is_marked {
            1
        } else {
            self.state.max_gso_segments()
        }
    }

    fn send(&self, peer: SocketAddr, contents: &[u8], size: usize) -> io::Result<()> {
        let sent = if self.is_marked {
            // quinn-udp gives each batch the congestion notification that the caller wants, in the byte that the mark
            // stands in.
            let address = peer.into();
            self.socket.send_to(contents, &address).map(|_| ())
        } else {
            let transmit = Transmit {
                destination: peer,
                ecn: None,
                contents,
                segment_size: (contents.len() > size).then_some(size),
                src_ip: None,
            };
            self.state
                .try_send(UdpSockRef::from(&self.socket), &transmit)
        };
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.writable.store(false, Relaxed);
        }
        sent
    }

    fn untaken(&self) -> usize {
        backlog::untaken(self.socket.as_fd())
    }

    fn on_event(&self, event: &mio::event::Event) {
        if event.is_readable() || event.is_error() {
            self.readable.store(true, Relaxed);
        }
        if event.is_writable() {
            self.writable.store(true, Relaxed);
        }
    }

    fn is_readable(&self) -> bool {
        self.readable.load(Relaxed)
    }

    fn is_writable(&self) -> bool {
        self.writable.load(Relaxed)
    }

    fn receive(
        &self,
        buffers: &mut DatagramBuffers,
        small: &mut SmallFrames,
        sink: &mut dyn FnMut(SocketAddr, Bytes),
    ) -> usize {
        if !self.is_readable() {
            return 0;
        }
        let mut metas = [RecvMeta::default(); BATCH];
        let mut chunks = buffers.chunks().iter_mut();
        let mut slices: [IoSliceMut<'_>; BATCH] = std::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().map_or(&mut [], |chunk| chunk.as_mut()))
        });
        let received = self
            .state
            .recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas);
        let count = match received {
            Ok(count) => count,
            Err(error) => {
                // An ICMP error of an earlier datagram is reported once and is no end: the
                // peer may be restarting.
                let more = error.kind() != io::ErrorKind::WouldBlock;
                self.readable.store(more, Relaxed);
                return CALL_COST;
            }
        };
        // Fewer than asked for: the socket is empty, and what comes later is a new event.
        self.readable.store(count == BATCH, Relaxed);
        let mut cost = CALL_COST;
        for (i, meta) in metas[..count].iter().enumerate() {
            let RecvMeta {
                addr, len, stride, ..
            } = *meta;
            let stride = stride.max(1);
            cost += len + DATAGRAM_COST * len.div_ceil(stride).max(1);
            if len == 0 {
                continue;
            }
            if buffers.pool.is_stretched() {
                buffers
                    .filled(i, len)
                    .chunks(stride)
                    .for_each(|datagram| sink(addr, Bytes::copy_from_slice(datagram)));
                continue;
            }
            let whole = if len < FREEZE_FROM {
                Bytes::copy_from_slice(buffers.filled(i, len))
            } else {
                buffers.take(i).freeze(len)
            };
            for start in (0..len).step_by(stride) {
                let datagram = whole.slice(start..len.min(start + stride));
                let moved = SmallFrames::takes(datagram.len());
                sink(
                    addr,
                    if moved {
                        small.copy(&datagram)
                    } else {
                        datagram
                    },
                );
            }
        }
        cost
    }
}

/// Opens the sockets of a multicast face: one that hears the group, and one to speak from.
/// What is spoken is heard by other processes of this host, and by oneself.
fn multicast(
    group: SocketAddr,
    local: Option<IpAddr>,
    buffer_bytes: usize,
) -> io::Result<(Socket, Socket)> {
    let local = match local {
        Some(local) => local,
        // The address that the routing table takes toward the group.
        None => connect(group, None, 0)?
            .local_addr()?
            .as_socket()
            .map_or_else(|| unspecified(&group).ip(), |address| address.ip()),
    };
    let hear = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    hear.set_reuse_address(true)?;
    hear.set_nonblocking(true)?;
    set_buffers(&hear, buffer_bytes, "a multicast face");
    hear.bind(&group.into())?;
    let speak = bind(SocketAddr::new(local, 0), buffer_bytes)?;
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
fn bind(local: SocketAddr, buffer_bytes: usize) -> io::Result<Socket> {
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
fn connect(peer: SocketAddr, local: Option<IpAddr>, buffer_bytes: usize) -> io::Result<Socket> {
    let local = local.map_or_else(|| unspecified(&peer), |ip| SocketAddr::new(ip, 0));
    let socket = bind(local, buffer_bytes)?;
    socket.connect(&peer.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ndn_packet::{Data, Name, NetPacket, SigningKey};

    use super::*;
    use crate::face::budgets::Budgets;
    use crate::face::chunk::BufferBudget;
    use crate::face::datagram::DatagramFace;

    #[test]
    fn empty_datagrams_use_a_turn_up() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = UdpPort::new(socket.into(), None).unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..BATCH {
            sender.send_to(&[], address).unwrap();
        }
        port.readable.store(true, Relaxed);
        let (mut buffers, mut small) = (
            DatagramBuffers::new(&BufferBudget::new(usize::MAX)),
            SmallFrames::default(),
        );
        let mut cost = 0;
        while port.is_readable() {
            cost += port.receive(&mut buffers, &mut small, &mut |_, _| {
                panic!("nothing in it")
            });
        }
        assert!(cost >= BATCH * DATAGRAM_COST + CALL_COST, "{cost}");
    }

    fn data(byte: u8) -> NetPacket {
        let name: Name = "/a".parse().unwrap();
        let wire = Data::builder(&name)
            .content(&[byte; 1000])
            .sign(&SigningKey::DigestSha256);
        NetPacket::data(Data::parse(wire).unwrap())
    }

    fn face(peer: SocketAddr, options: &LinkOptions) -> DatagramFace {
        let socket = super::connect(peer, None, 0).unwrap();
        let port = Arc::new(UdpPort::new(socket, options.dscp).unwrap());
        let budgets = Budgets::of_one_face(usize::MAX);
        DatagramFace::new(port, peer, options, &budgets, [1, 2])
    }

    #[test]
    fn marked_datagrams_go_one_by_one_and_all_arrive() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let peer = std::net::UdpSocket::bind(address).unwrap();
            peer.set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let marked = LinkOptions {
                dscp: Some(46),
                ..LinkOptions::default()
            };
            let mut face = face(peer.local_addr().unwrap(), &marked);
            assert_eq!(face.dscp(), Some(46));
            (0..50).for_each(|byte| face.send(Duration::ZERO, &data(byte)));
            face.flush();
            for byte in 0..50 {
                let mut buffer = [0; 2000];
                let length = peer.recv(&mut buffer).unwrap();
                let content = [byte; 1000];
                assert!(buffer[..length].windows(1000).any(|part| part == content));
            }
            assert_eq!((face.queued(), face.link.counters.send_errors), (0, 0));
        }
    }

    #[test]
    fn datagrams_that_are_refused_together_go_one_by_one() {
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap();
        let mut face = face(address, &LinkOptions::default());
        drop(peer);
        // Nobody is there: the host says so, and the next send hears it.
        face.send(Duration::ZERO, &data(1));
        face.flush();
        assert_eq!((face.queued(), face.link.counters.send_errors), (0, 0));
        let peer = std::net::UdpSocket::bind(address).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        (0..5).for_each(|_| face.send(Duration::ZERO, &data(2)));
        face.flush();
        assert_eq!((face.queued(), face.link.counters.send_errors), (0, 1));
        for _ in 0..5 {
            assert!(peer.recv(&mut [0; 2000]).unwrap() > 1000);
        }
    }
}
