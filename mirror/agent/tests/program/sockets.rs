//! Live sockets with the numbers that a test wants, in a network namespace of the test's own thread.

use std::{
    io,
    mem::size_of_val,
    net::SocketAddr,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

const RECEIVE_QUEUE: i32 = 1;
const SEND_QUEUE: i32 = 2;

/// What a connection is to look like.
#[derive(Clone, Copy)]
pub struct Numbers {
    /// The next octet to be sent, all before being acknowledged.
    pub snd: u32,
    /// The next octet to come.
    pub rcv: u32,
    /// What the far end lets us send, in octets.
    pub snd_wnd: u32,
    /// What we let the far end send.
    pub rcv_wnd: u32,
    /// Scales of these.
    pub scales: (u8, u8),
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            snd: 5_120,
            rcv: 900_000,
            snd_wnd: 1 << 20,
            rcv_wnd: 1 << 20,
            scales: (7, 7),
        }
    }
}

impl Numbers {
    /// Windows for many segments.
    pub fn wide() -> Self {
        Self {
            snd_wnd: 32 << 20,
            rcv_wnd: 32 << 20,
            scales: (12, 12),
            ..Self::default()
        }
    }
}

/// An established connection from `local` to `remote`, which needs not exist: the kernel's TCP_REPAIR makes it without a
/// segment.
pub fn established(local: SocketAddr, remote: SocketAddr, numbers: Numbers) -> io::Result<OwnedFd> {
    let family = if local.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    // SAFETY: a plain system call; the descriptor is owned at once.
    let socket = unsafe {
        let fd = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32)?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR, &1i32)?;
    with_address(local, |address, octets| unsafe {
        libc::bind(socket.as_raw_fd(), address, octets)
    })?;
    for (queue, seq) in [(SEND_QUEUE, numbers.snd), (RECEIVE_QUEUE, numbers.rcv)] {
        set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, &queue)?;
        set(&socket, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, &seq)?;
    }
    with_address(remote, |address, octets| unsafe {
        libc::connect(socket.as_raw_fd(), address, octets)
    })?;
    let scales = u32::from(numbers.scales.0) | u32::from(numbers.scales.1) << 16;
    // Kinds of option: segment size, scales, SACK, timestamps.
    let options: [[u32; 2]; 4] = [[2, 1460], [3, scales], [4, 0], [8, 0]];
    set(
        &socket,
        libc::IPPROTO_TCP,
        libc::TCP_REPAIR_OPTIONS,
        &options,
    )?;
    let window: [u32; 5] = [
        numbers.rcv,
        numbers.snd_wnd,
        numbers.snd_wnd.max(1),
        numbers.rcv_wnd,
        numbers.rcv,
    ];
    set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR_WINDOW, &window)?;
    Ok(socket)
}

fn set<T>(socket: &impl AsRawFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: the value lives through the call, and its size is its own.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    };
    outcome(done)
}

fn outcome(done: i32) -> io::Result<()> {
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn with_address(
    at: SocketAddr,
    call: impl Fn(*const libc::sockaddr, libc::socklen_t) -> i32,
) -> io::Result<()> {
    let done = match at {
        SocketAddr::V4(at) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: at.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(at.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            call(
                std::ptr::from_ref(&address).cast(),
                size_of_val(&address) as u32,
            )
        }
        SocketAddr::V6(at) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: at.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: at.ip().octets(),
                },
                sin6_scope_id: 0,
            };
            call(
                std::ptr::from_ref(&address).cast(),
                size_of_val(&address) as u32,
            )
        }
    };
    outcome(done)
}

/// Octets that are sent, as the kernel sees it, and not acknowledged; none goes. For a socket of [`established`].
pub fn in_flight(socket: &OwnedFd, octets: usize) -> io::Result<()> {
    set(
        socket,
        libc::IPPROTO_TCP,
        libc::TCP_REPAIR_QUEUE,
        &SEND_QUEUE,
    )?;
    let data = vec![0u8; octets];
    // SAFETY: the data lives through the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), data.as_ptr().cast(), octets, 0) };
    outcome(if sent == octets as isize { 0 } else { -1 })
}

/// Octets that are written, and not sent: the far end of this socket of [`established`] lets it send nothing.
pub fn unsent(socket: &OwnedFd, octets: usize) -> io::Result<()> {
    const OFF_WITHOUT_PROBE: i32 = -1;
    let tcp = libc::IPPROTO_TCP;
    set(socket, tcp, libc::TCP_REPAIR, &OFF_WITHOUT_PROBE)?;
    let data = vec![0u8; octets];
    // SAFETY: the data lives through the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), data.as_ptr().cast(), octets, 0) };
    outcome(if sent == octets as isize { 0 } else { -1 })
}

/// The numbers of the next octets that a connection sends and receives.
pub fn numbers_of(socket: &impl AsRawFd) -> io::Result<(u32, u32)> {
    const OFF_WITHOUT_PROBE: i32 = -1;
    let tcp = libc::IPPROTO_TCP;
    set(socket, tcp, libc::TCP_REPAIR, &1i32)?;
    let mut numbers = [0u32; 2];
    for (number, queue) in numbers.iter_mut().zip([SEND_QUEUE, RECEIVE_QUEUE]) {
        set(socket, tcp, libc::TCP_REPAIR_QUEUE, &queue)?;
        let mut octets = size_of_val(number) as libc::socklen_t;
        // SAFETY: the number has room for what is asked, and lives through the call.
        outcome(unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                tcp,
                libc::TCP_QUEUE_SEQ,
                std::ptr::from_mut(number).cast(),
                &mut octets,
            )
        })?;
    }
    set(socket, tcp, libc::TCP_REPAIR, &OFF_WITHOUT_PROBE)?;
    Ok((numbers[0], numbers[1]))
}

/// A network namespace for this thread, with nothing but its loopback, up.
pub fn own_namespace() -> io::Result<()> {
    // SAFETY: plain system calls; the request is filled in as its kind wants.
    unsafe {
        outcome(libc::unshare(libc::CLONE_NEWNET))?;
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        outcome(fd)?;
        let socket = OwnedFd::from_raw_fd(fd);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        outcome(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &request,
        ))
    }
}
