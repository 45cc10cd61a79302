//! A client that writes a stream to a chain of replicas as HDFS does: a header down the chain and a response up, then
//! data, which each replica hands on, and acks from the last one back to the client. Each replica compares every octet.

use std::{
    io::{self, Read as _, Write as _},
    mem::size_of_val,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use trunkline_mirror::layout::Key;

use crate::{
    GIVE_UP,
    hosts::{Host, address, succeeded},
};

/// Where replicas listen.
pub const PORT: u16 = 9866;
const RESPONSE: usize = 40;
const CHUNK: usize = 65_536;
const ACK: usize = 12;
/// Chunks that the client sends before the first of them must be acknowledged, as DFSOutputStream's packets.
const IN_FLIGHT: usize = 80;
/// The stream repeats after so many octets: a prime, so that nothing that is moved by accident is itself again.
const PERIOD: usize = 1_000_003;

pub struct Chain {
    /// The connection to each replica, in the block's direction.
    pub keys: Vec<Key>,
    /// Octets that the client has sent and each replica has had.
    pub progress: Arc<Vec<AtomicU64>>,
    /// The client stops behind so many octets.
    last: Arc<AtomicU64>,
    /// The first replica's sockets.
    firsts: Arc<Mutex<Vec<TcpStream>>>,
    work: Vec<JoinHandle<io::Result<u64>>>,
}

/// Header of the connection to a replica: each is of another length.
fn header(position: usize) -> usize {
    400 - 50 * position
}

impl Chain {
    /// Writes from the first host to all others, over IPv6 or IPv4, until it is told to end.
    pub fn start(hosts: &[Host], v6: bool) -> Self {
        let replicas = hosts.len() - 1;
        let last = Arc::new(AtomicU64::new(u64::MAX));
        let progress: Arc<Vec<_>> = Arc::new(hosts.iter().map(|_| AtomicU64::new(0)).collect());
        let pattern: Arc<Vec<u8>> = Arc::new(pattern());
        let firsts = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = mpsc::channel();
        let mut work = Vec::new();
        for (position, host) in hosts.iter().enumerate().skip(1) {
            let at = SocketAddr::from((address(host.number, v6), PORT));
            let listener = host
                .namespace
                .run(|| TcpListener::bind(at))
                .expect("listen");
            prepare(&listener);
            let next = hosts
                .get(position + 1)
                .map(|next| SocketAddr::from((address(next.number, v6), PORT)));
            let replica = Replica {
                position,
                listener,
                next,
                pattern: pattern.clone(),
                progress: progress.clone(),
                sockets: (position == 1).then(|| firsts.clone()),
            };
            let tell = tell.clone();
            work.push(host.namespace.start(move || replica.run(&tell)));
        }
        let (theirs, until) = (progress.clone(), last.clone());
        let first = SocketAddr::from((address(hosts[1].number, v6), PORT));
        let client = move || write(first, &pattern, &theirs[0], &until);
        work.insert(0, hosts[0].namespace.start(client));
        let mut keys: Vec<(usize, Key)> = (0..replicas)
            .map(|_| told.recv_timeout(GIVE_UP).expect("a connection"))
            .collect();
        keys.sort_by_key(|(position, _)| *position);
        Self {
            keys: keys.into_iter().map(|(_, key)| key).collect(),
            progress,
            last,
            firsts,
            work,
        }
    }

    /// Octets that all replicas have.
    pub fn everywhere(&self) -> u64 {
        let all = self.progress.iter().map(|octets| octets.load(Relaxed));
        all.min().expect("replicas")
    }

    /// The client sends no more.
    pub fn stop(&self) {
        self.last.store(0, Relaxed);
    }

    /// The first replica's process dies: its connections are reset.
    pub fn kill_the_first(&self) {
        for socket in self.firsts.lock().expect("not poisoned").iter() {
            // SAFETY: all zero is AF_UNSPEC, by which the kernel disconnects.
            let nowhere: libc::sockaddr = unsafe { std::mem::zeroed() };
            let octets = size_of_val(&nowhere) as libc::socklen_t;
            // SAFETY: the address lives through the call.
            succeeded(unsafe { libc::connect(socket.as_raw_fd(), &nowhere, octets) });
        }
    }

    /// Ends the stream; what the client sent and each replica had of it.
    pub fn end(self) -> Vec<io::Result<u64>> {
        self.stop();
        let ends = self.work.into_iter().map(|work| work.join());
        ends.map(|end| end.expect("octets as they were sent"))
            .collect()
    }
}

/// Cubic, as the rounds of nothing that the mirror makes mislead BBR; and no call waits for ever.
fn prepare(socket: &impl AsRawFd) {
    const CUBIC: [u8; 5] = *b"cubic";
    let patience = libc::timeval {
        tv_sec: GIVE_UP.as_secs() as libc::time_t,
        tv_usec: 0,
    };
    set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &CUBIC);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience);
    set(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &patience);
}

fn set<T>(socket: &impl AsRawFd, level: i32, option: i32, value: &T) {
    // SAFETY: the value lives through the call, and its size is its own.
    succeeded(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    });
}

/// Connects, says the header and hears the response.
fn open(to: SocketAddr, position: usize) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&to, GIVE_UP)?;
    prepare(&stream);
    stream.set_nodelay(true)?;
    stream.write_all(&vec![7; header(position)])?;
    stream.read_exact(&mut [0; RESPONSE])?;
    Ok(stream)
}

fn write(first: SocketAddr, pattern: &[u8], sent: &AtomicU64, last: &AtomicU64) -> io::Result<u64> {
    let mut stream = open(first, 1)?;
    let mut unacknowledged = 0;
    while sent.load(Relaxed) < last.load(Relaxed) {
        if unacknowledged == IN_FLIGHT {
            stream.read_exact(&mut [0; ACK])?;
            unacknowledged -= 1;
        }
        stream.write_all(octets(pattern, sent.load(Relaxed), CHUNK))?;
        sent.fetch_add(CHUNK as u64, Relaxed);
        unacknowledged += 1;
    }
    stream.read_exact(&mut vec![0; unacknowledged * ACK])?;
    Ok(sent.load(Relaxed))
}

struct Replica {
    position: usize,
    listener: TcpListener,
    next: Option<SocketAddr>,
    pattern: Arc<Vec<u8>>,
    progress: Arc<Vec<AtomicU64>>,
    /// Where this one's sockets are to be had.
    sockets: Option<Arc<Mutex<Vec<TcpStream>>>>,
}

impl Replica {
    fn run(self, tell: &mpsc::Sender<(usize, Key)>) -> io::Result<u64> {
        let (mut up, from) = self.listener.accept()?;
        prepare(&up);
        up.set_nodelay(true)?;
        let _ = tell.send((self.position, Key::new(from, up.local_addr()?)));
        up.read_exact(&mut vec![0; header(self.position)])?;
        let down = self
            .next
            .map(|to| open(to, self.position + 1))
            .transpose()?;
        up.write_all(&[9; RESPONSE])?;
        if let Some(sockets) = &self.sockets {
            let mut sockets = sockets.lock().expect("not poisoned");
            for socket in [Some(&up), down.as_ref()].into_iter().flatten() {
                sockets.push(socket.try_clone()?);
            }
        }
        let octets = self.relay(&up, down.as_ref());
        if octets.is_err() {
            // As a DataNode closes both, whatever its threads still do with them.
            for socket in [Some(&up), down.as_ref()].into_iter().flatten() {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        octets
    }

    fn relay(&self, mut up: &TcpStream, mut down: Option<&TcpStream>) -> io::Result<u64> {
        let acks = match down {
            Some(down) => {
                let (mut from, mut to) = (down.try_clone()?, up.try_clone()?);
                Some(thread::spawn(move || io::copy(&mut from, &mut to)))
            }
            None => None,
        };
        let (mut at, mut buffer) = (0, vec![0; CHUNK]);
        loop {
            let had = up.read(&mut buffer)?;
            if had == 0 {
                break;
            }
            assert!(
                buffer[..had] == *octets(&self.pattern, at, had),
                "replica {}: other octets than were sent, from {at} on",
                self.position
            );
            let before = at / CHUNK as u64;
            at += had as u64;
            match &mut down {
                Some(down) => down.write_all(&buffer[..had])?,
                None => {
                    for _ in before..at / CHUNK as u64 {
                        up.write_all(&[6; ACK])?;
                    }
                }
            }
            self.progress[self.position].store(at, Relaxed);
        }
        if let Some(down) = down {
            down.shutdown(Shutdown::Write)?;
        }
        if let Some(acks) = acks {
            acks.join().expect("acks")?;
        }
        Ok(at)
    }
}

/// The stream's octets from `at` on.
fn octets(pattern: &[u8], at: u64, count: usize) -> &[u8] {
    let start = (at % PERIOD as u64) as usize;
    &pattern[start..start + count]
}

/// A period of the stream, and as much of the next as one read may want.
fn pattern() -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut pattern: Vec<u8> = (0..PERIOD)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect();
    pattern.extend_from_within(..CHUNK);
    pattern
}

/// Asks until the answer is yes.
pub fn until(what: &str, mut ask: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + GIVE_UP;
    while !ask() {
        assert!(std::time::Instant::now() < end, "in vain: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}
