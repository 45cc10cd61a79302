//! A switch of four ports that makes mirrored copies, as flow entries of an OpenFlow switch do, and loses frames by a
//! sequence of its own, the same in each run.

use std::{
    ffi::CString,
    mem::size_of,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    ops::Range,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
};

use trunkline_mirror::layout::MARK;

use crate::hosts::{Namespace, mac, port, succeeded};

const ETHERNET: usize = 14;

/// Segments from `client` to `first` are also sent to the replica at `position`, as if they were of the connection from
/// `source` to `target`.
#[derive(Clone, Copy)]
pub struct Copies {
    pub client: SocketAddr,
    pub first: SocketAddr,
    pub source: SocketAddr,
    pub target: SocketAddr,
    pub position: u8,
}

/// What a test may change while frames pass.
#[derive(Default)]
pub struct Control {
    pub copies: Mutex<Vec<Copies>>,
    /// Of a thousand copies, how many are lost.
    pub lose_copies: AtomicU64,
    /// Of a thousand other frames.
    pub lose_others: AtomicU64,
    /// Copies that were sent out, and lost.
    pub copied: AtomicU64,
    pub lost: AtomicU64,
    over: AtomicBool,
}

pub struct Switch {
    pub control: Arc<Control>,
    work: Option<JoinHandle<()>>,
}

impl Switch {
    /// Forwards between the first `ports` ports in the namespace, by the hosts' own addresses.
    pub fn start(namespace: &Namespace, ports: u8) -> Self {
        let control = Arc::new(Control::default());
        let theirs = control.clone();
        let ports = (0..ports).map(port);
        let ports: Vec<_> = namespace.run(|| ports.map(|port| open(&port)).collect());
        let work = thread::spawn(move || forward(&ports, &theirs));
        Self {
            control,
            work: Some(work),
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.control.over.store(true, Relaxed);
        if let Some(work) = self.work.take() {
            let _ = work.join();
        }
    }
}

/// All frames that come in at an interface, and none that goes out.
fn open(interface: &str) -> OwnedFd {
    const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();
    let name = CString::new(interface).expect("a name");
    // SAFETY: plain system calls, whose arguments live through them.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let socket = succeeded(libc::socket(libc::AF_PACKET, kind, 0));
        let socket = OwnedFd::from_raw_fd(socket);
        let mut at: libc::sockaddr_ll = std::mem::zeroed();
        at.sll_family = libc::AF_PACKET as u16;
        at.sll_protocol = ALL;
        at.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        let options = [
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 64 << 20),
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1i32),
        ];
        for (level, option, value) in options {
            succeeded(libc::setsockopt(
                socket.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(&value).cast(),
                size_of::<i32>() as u32,
            ));
        }
        succeeded(libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&at).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        ));
        socket
    }
}

fn forward(ports: &[OwnedFd], control: &Control) {
    let (mut frame, mut dice) = ([0; 2048], Dice(1));
    let mut ready: Vec<_> = ports
        .iter()
        .map(|port| libc::pollfd {
            fd: port.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    while !control.over.load(Relaxed) {
        // SAFETY: as many as there are.
        unsafe { libc::poll(ready.as_mut_ptr(), ready.len() as u64, 50) };
        for port in ports {
            // One port's burst must not keep the others waiting.
            for _ in 0..64 {
                // SAFETY: no more than there is room for.
                let octets = unsafe {
                    libc::recv(port.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0)
                };
                if octets < ETHERNET as isize {
                    break;
                }
                pass(ports, control, &mut dice, &frame[..octets as usize]);
            }
        }
    }
}

fn pass(ports: &[OwnedFd], control: &Control, dice: &mut Dice, frame: &[u8]) {
    if !dice.below(control.lose_others.load(Relaxed)) {
        for (number, port) in ports.iter().enumerate() {
            if frame[..6] == mac(number as u8) {
                send(port, frame);
            }
        }
    }
    let Some((source, target)) = ends(frame) else {
        return;
    };
    for copies in control.copies.lock().expect("not poisoned").iter() {
        if (source, target) != (copies.client, copies.first) {
            continue;
        }
        if dice.below(control.lose_copies.load(Relaxed)) {
            control.lost.fetch_add(1, Relaxed);
        } else {
            control.copied.fetch_add(1, Relaxed);
            send(
                &ports[usize::from(copies.position)],
                &rewritten(frame, copies),
            );
        }
    }
}

fn send(port: &OwnedFd, frame: &[u8]) {
    // SAFETY: no more than there is. A frame for which the port has no room is lost, as at any switch.
    unsafe { libc::send(port.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
}

/// Where a TCP segment over IP has its addresses, source first, and where TCP begins.
fn places(frame: &[u8]) -> Option<(Range<usize>, usize)> {
    let (addresses, l4, protocol) = match frame.get(12..14)? {
        [0x08, 0x00] => {
            let l4 = ETHERNET + usize::from(frame.get(ETHERNET)? & 15) * 4;
            (26..34, l4, 23)
        }
        [0x86, 0xdd] => (22..54, ETHERNET + 40, 20),
        _ => return None,
    };
    (frame.len() >= l4 + 20 && frame[protocol] == 6).then_some((addresses, l4))
}

/// The ends of a TCP segment.
fn ends(frame: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (addresses, l4) = places(frame)?;
    let (source, target) = frame[addresses.clone()].split_at(addresses.len() / 2);
    let end = |address: &[u8], port: usize| {
        let address = match address.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(address).expect("4")),
            _ => Ipv6Addr::from(<[u8; 16]>::try_from(address).expect("16")).into(),
        };
        SocketAddr::new(address, u16::from_be_bytes([frame[port], frame[port + 1]]))
    };
    Some((end(source, l4), end(target, l4 + 2)))
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn rewritten(frame: &[u8], copies: &Copies) -> Vec<u8> {
    let mut copy = frame.to_vec();
    let (places, l4) = places(frame).expect("ends were found");
    copy[..6].copy_from_slice(&mac(copies.position));
    copy[6..9].copy_from_slice(&MARK);
    copy[9..12].copy_from_slice(&[0, 0, copies.position]);
    let fresh = [octets(copies.source.ip()), octets(copies.target.ip())].concat();
    copy[places.clone()].copy_from_slice(&fresh);
    copy[l4..l4 + 2].copy_from_slice(&copies.source.port().to_be_bytes());
    copy[l4 + 2..l4 + 4].copy_from_slice(&copies.target.port().to_be_bytes());
    let addresses = difference(&frame[places], &fresh);
    let ports = difference(&frame[l4..l4 + 4], &copy[l4..l4 + 4]);
    if copies.target.is_ipv4() {
        amend(&mut copy[24..26], addresses);
    }
    amend(&mut copy[l4 + 16..l4 + 18], addresses + ports);
    copy
}

/// What a checksum's complement gains by the change (RFC 1624).
fn difference(was: &[u8], is: &[u8]) -> u32 {
    let words = |octets: &[u8], turn: u16| -> u32 {
        octets
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]) ^ turn))
            .sum()
    };
    words(was, 0xffff) + words(is, 0)
}

fn amend(field: &mut [u8], difference: u32) {
    let mut sum = u32::from(!u16::from_be_bytes([field[0], field[1]])) + difference;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    field.copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    /// Whether a throw of a thousand sides is below `limit`.
    fn below(&mut self, limit: u64) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % 1000 < limit
    }
}
