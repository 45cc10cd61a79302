//! What a node is started with, and the check that all of it makes sense.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use ndn_forwarder::{FacePersistency, FaceScope, Forwarder, MAX_WORKERS, StrategyKind, Workers};
use ndn_packet::{MAX_JUMBO_PACKET, Name};

use crate::credentials::Credentials;
use crate::uri::{FaceUri, Host};

/// To whom packets are lent: who may see the memory that all packets lie in which this process receives or makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lend {
    /// Packets are sent, by ring or socket.
    Nobody,
    /// Peers whose processes run as the same user, or as root.
    #[default]
    SameUser,
    /// Whoever may connect.
    Anyone,
}

/// Settings that configured faces, accepted faces and management-made faces have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOptions {
    /// Largest UDP datagram payload in bytes; larger packets are fragmented by NDNLPv2.
    /// `None` takes what fits an Ethernet frame: 1472 over IPv4, 1452 over IPv6. No meaning on
    /// stream faces. Range 576 to 65507.
    pub mtu: Option<usize>,
    /// Whether to offer jumbo packets to the peer, of up to 1 MiB by a stream (half the send queue where that is less)
    /// and 64 KiB and headers by datagrams instead of 8800 bytes; they are used only if it offers them too.
    pub jumbo: bool,
    /// Whether to offer shared memory to a Unix peer; used only if it offers it too.
    pub shared_memory: bool,
    /// Size in bytes of each direction's ring where shared memory is agreed. A power of two,
    /// 64 KiB to 64 MiB.
    pub ring_bytes: usize,
    /// To whom packets of jumbo size are lent where shared memory is agreed: the peer reads them where they lie. A
    /// listener's peer sees all packets then that the node receives, its own or not.
    pub lend: Lend,
    /// Packets that the peer lends are used where they lie, not copied first. For those alone who copy the content of a
    /// packet before they check it: the peer could change it meanwhile. It is done where the peer's process is the same
    /// user's or root's. Such packets are not kept in the content store.
    pub keep_lent: bool,
    /// Most bytes that may wait to be sent on a face; what comes beyond is dropped and counted.
    pub send_queue_bytes: usize,
    /// Data queued while more than this many bytes wait carries a congestion mark: bytes in the
    /// face's own queue, and those that the system has taken and not passed on. 0 marks nothing.
    pub mark_threshold_bytes: usize,
    /// Kernel buffer in bytes asked for on Unix and UDP sockets, each direction. TCP tunes its
    /// own. The kernel may grant less: then a warning names the sysctl.
    pub socket_buffer_bytes: usize,
    /// Differentiated services code point (RFC 2474) of the IP packets sent, 0 to 63; `None` leaves the system's. No
    /// meaning on Unix sockets. Marked datagrams are sent one at a time, not many in a call.
    pub dscp: Option<u8>,
    /// Packets that may be in reassembly on a face at once.
    pub reassembly_messages: usize,
    /// Bytes that may be in reassembly on a face at once.
    pub reassembly_bytes: usize,
    /// Whether the peer counts as being on this host, so that `/localhost` names may pass.
    /// `None` goes by the address: Unix and TCP over loopback are local, UDP never is.
    pub scope: Option<FaceScope>,
    /// Whether self-learning strategies may try the face for names that no route covers.
    /// `None` allows it on faces that are not local.
    pub discovery: Option<bool>,
    /// Certificate, key and CA: what `tls://` faces can't do without, and the others have no use for.
    pub tls: Option<Credentials>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            mtu: None,
            jumbo: true,
            shared_memory: true,
            ring_bytes: 1 << 20,
            lend: Lend::default(),
            keep_lent: false,
            send_queue_bytes: 16 << 20,
            mark_threshold_bytes: 2 << 20,
            socket_buffer_bytes: 4 << 20,
            dscp: None,
            reassembly_messages: 128,
            reassembly_bytes: 8 << 20,
            scope: None,
            discovery: None,
            tls: None,
        }
    }
}

/// A place where peers may connect, or a multicast group to join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenConfig {
    /// Where: `unix://`, `tcp://`, `tls://` or `udp://`, the host a literal address.
    pub uri: FaceUri,
    /// Settings of the faces that come in here.
    pub link: LinkOptions,
    /// On-demand UDP faces without traffic for this long are closed.
    pub idle_timeout: Duration,
    /// Most faces that may be open here at once; more are refused and counted.
    pub max_faces: usize,
    /// How many of them peers with one address may have: one IPv4 address, or one IPv6 network of 64 bits. `None` is a
    /// quarter of all. No meaning on Unix sockets.
    pub max_faces_per_address: Option<usize>,
    /// How long a peer may take to prove who it is, over TLS.
    pub handshake_timeout: Duration,
    /// Permission bits of a Unix socket, such as `0o660`; `None` leaves the umask's.
    pub unix_mode: Option<u32>,
}

impl ListenConfig {
    /// A listener with default settings.
    pub fn new(uri: FaceUri) -> Self {
        Self {
            uri,
            link: LinkOptions::default(),
            idle_timeout: Duration::from_secs(600),
            max_faces: 4096,
            max_faces_per_address: None,
            handshake_timeout: Duration::from_secs(10),
            unix_mode: None,
        }
    }

    pub(crate) fn max_faces_of_one_address(&self) -> usize {
        self.max_faces_per_address
            .unwrap_or(self.max_faces / 4)
            .max(1)
    }
}

/// A face that a node opens by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceConfig {
    /// Where to. A `udp://` multicast group makes a multicast face.
    pub uri: FaceUri,
    /// A permanent face reconnects for ever; a persistent one is removed when it fails.
    pub persistency: FacePersistency,
    /// Link settings.
    pub link: LinkOptions,
    /// Address that the face's own end binds to.
    pub local_bind: Option<IpAddr>,
    /// Prefixes that lead out by this face, each with its cost.
    pub routes: Vec<(Name, u64)>,
    /// Shortest and longest wait between attempts to reconnect; doubled each time, jittered.
    pub reconnect: (Duration, Duration),
    /// How long an attempt to connect may take, the handshake of TLS included.
    pub connect_timeout: Duration,
    /// TLS: the name that the peer's certificate must have. `None` takes the host of `uri`.
    pub server_name: Option<String>,
}

impl FaceConfig {
    /// A permanent face with default settings and no routes.
    pub fn new(uri: FaceUri) -> Self {
        Self {
            uri,
            persistency: FacePersistency::Permanent,
            link: LinkOptions::default(),
            local_bind: None,
            routes: Vec::new(),
            reconnect: (Duration::from_millis(100), Duration::from_secs(10)),
            connect_timeout: Duration::from_secs(5),
            server_name: None,
        }
    }
}

/// What a [`crate::Node`] is made of.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Name of the loop's thread (15 bytes at most are seen by the system).
    pub thread_name: String,
    /// The forwarder's own settings.
    pub forwarder: ndn_forwarder::Config,
    /// Where peers may connect.
    pub listeners: Vec<ListenConfig>,
    /// Faces to open.
    pub faces: Vec<FaceConfig>,
    /// Strategies by prefix, beside the forwarder's default.
    pub strategies: Vec<(Name, StrategyKind)>,
    /// Settings of faces that management commands make.
    pub managed_faces: LinkOptions,
    /// What all faces together may take in memory.
    pub memory: MemoryConfig,
    /// On how many threads it runs.
    pub workers: WorkersConfig,
    /// Bytes of memory that applications of this process may make packets in ([`crate::Node::packet_buffers`]), so that a
    /// local forwarder is lent them: so many for those of up to 64 KiB, and twice as many for all; 0 for none.
    pub made_packets_bytes: usize,
}

/// How a forwarder is shared out among threads, each with a part of the tables and some of the faces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkersConfig {
    /// Workers, a thread each, 1 to 64.
    pub count: usize,
    /// Names whose first so many components are the same are one worker's, 1 to 32.
    pub prefix_components: usize,
}

impl Default for WorkersConfig {
    fn default() -> Self {
        Self {
            count: 1,
            prefix_components: 4,
        }
    }
}

impl WorkersConfig {
    fn check(&self, memory: &MemoryConfig, errors: &mut ConfigErrors) {
        if !(1..=MAX_WORKERS).contains(&self.count) {
            errors.add(
                "workers: count".to_owned(),
                format_args!("{} is out of range", self.count),
                "use 1 to 64, best no more than there are cores",
            );
        }
        if !(1..=32).contains(&self.prefix_components) {
            errors.add(
                "workers: prefix_components".to_owned(),
                format_args!("{} is out of range", self.prefix_components),
                "use 1 to 32",
            );
        }
        let bytes = self.count.saturating_mul(LEAST_BUFFERS);
        if self.count > 1 && memory.receive_buffers_bytes < bytes {
            errors.add(
                "memory: receive_buffers_bytes".to_owned(),
                format_args!(
                    "{} bytes are too few for {} workers",
                    memory.receive_buffers_bytes, self.count
                ),
                "use at least 16777216 for each",
            );
        }
    }
}

/// Fewest bytes of receive buffers that a loop can do with.
const LEAST_BUFFERS: usize = 16 << 20;

/// What the faces of a node take memory for, by the names that status shows them by.
pub(crate) const MEMORY_PARTS: [&str; 4] =
    ["send_queues", "receive_buffers", "reassembly", "faces"];

/// Bounds of what the faces of a node take in memory together, beside the tables of its forwarder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Most bytes that the parts may come to, those of the forwarder included: a node whose parts come to more does not
    /// start. `None` takes what they come to.
    pub capacity_bytes: Option<usize>,
    /// Most bytes that may wait to be sent on all faces, tables of the queues included, at least 1 MiB. When they run
    /// short, the longest queues are the first whose packets are dropped and counted.
    pub send_queues_bytes: usize,
    /// Most bytes of the buffers that sockets are read into. Packets in the content store, in queues and in
    /// applications hold on to them; when they run short, packets are copied out. At least 16 MiB; best as much as the
    /// content store and 128 MiB.
    pub receive_buffers_bytes: usize,
    /// Most bytes that incomplete packets may take on all faces, at least 1 MiB: fragments, and packets above 64 KiB of
    /// streams. When they run short, the face that holds most is the first whose oldest packets are given up, and a
    /// stream's packet is passed over.
    pub reassembly_bytes: usize,
    /// Most bytes of faces themselves, at least 1 MiB: 24 KiB each, 56 KiB more for a stream with jumbo packets, 98 KiB
    /// for one over TLS, two rings for one with shared memory. When they run short, no more peers are taken in, and no more is agreed to.
    pub faces_bytes: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            capacity_bytes: None,
            send_queues_bytes: 256 << 20,
            receive_buffers_bytes: 384 << 20,
            reassembly_bytes: 64 << 20,
            faces_bytes: 256 << 20,
        }
    }
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            thread_name: "ndn-forwarder".to_owned(),
            forwarder: ndn_forwarder::Config::default(),
            listeners: Vec::new(),
            faces: Vec::new(),
            strategies: Vec::new(),
            managed_faces: LinkOptions::default(),
            memory: MemoryConfig::default(),
            workers: WorkersConfig::default(),
            made_packets_bytes: 0,
        }
    }
}

/// One setting that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}; {remedy}")]
pub struct SettingError {
    /// Which setting, with its place: `face[1].link.mtu`.
    pub setting: String,
    /// What is wrong with its value.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// All settings of a configuration that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigErrors(pub Vec<SettingError>);

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl ConfigErrors {
    fn add(&mut self, setting: String, problem: impl fmt::Display, remedy: &str) {
        self.0.push(SettingError {
            setting,
            problem: problem.to_string(),
            remedy: remedy.to_owned(),
        });
    }
}

impl NodeConfig {
    /// Checks every setting, so that an operator sees all mistakes at once.
    ///
    /// # Errors
    /// One entry a mistake, each with the setting's place and the way out.
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        let mut errors = ConfigErrors::default();
        for (i, listener) in self.listeners.iter().enumerate() {
            let at = format!("listen[{i}] {}", listener.uri);
            listener.link.check(&at, &mut errors);
            listener
                .link
                .check_certificate(&listener.uri, &at, &mut errors);
            if let Some(e) = listener.uri.endpoint()
                && matches!(e.host, Host::Name(_))
            {
                errors.add(
                    format!("{at}: uri"),
                    "a listener needs a literal address",
                    "write 0.0.0.0 or [::] for all interfaces, or one address of this host",
                );
            }
            if listener.uri.is_multicast() {
                errors.add(
                    format!("{at}: uri"),
                    "a multicast group is not a listener",
                    "configure it as a face",
                );
            }
            if listener.max_faces == 0 {
                errors.add(
                    format!("{at}: max_faces"),
                    "is 0",
                    "allow at least one face",
                );
            }
            if self.listeners[..i]
                .iter()
                .any(|other| other.uri == listener.uri)
            {
                errors.add(
                    format!("{at}: uri"),
                    "is listed twice",
                    "remove one of the two",
                );
            }
        }
        for (i, face) in self.faces.iter().enumerate() {
            let at = format!("face[{i}] {}", face.uri);
            face.link.check(&at, &mut errors);
            face.link.check_certificate(&face.uri, &at, &mut errors);
            face.check(&at, &mut errors);
            if self.faces[..i].iter().any(|other| other.uri == face.uri) {
                errors.add(
                    format!("{at}: uri"),
                    "is listed twice",
                    "remove one of the two",
                );
            }
        }
        self.managed_faces.check("managed_faces", &mut errors);
        self.memory.check(&mut errors);
        self.workers.check(&self.memory, &mut errors);
        if let Some(capacity) = self.memory.capacity_bytes
            && self.memory_bytes() > capacity
        {
            let parts = self.memory_parts();
            let parts: Vec<String> = parts
                .iter()
                .map(|(name, bytes)| format!("{name} {bytes}"))
                .collect();
            errors.add(
                "memory: capacity_bytes".to_owned(),
                format_args!(
                    "{capacity} bytes are less than the {} that its parts come to ({})",
                    self.memory_bytes(),
                    parts.join(", ")
                ),
                "make the parts smaller, or this larger",
            );
        }
        if errors.0.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}

impl NodeConfig {
    /// What the parts of the node may take in memory at most, in bytes, by the names that status shows them by.
    pub fn memory_parts(&self) -> Vec<(&'static str, usize)> {
        let workers = Workers::new(self.workers.count, self.workers.prefix_components);
        let worker = |number| Forwarder::worker(self.forwarder.clone(), &workers, number);
        let mut tables = worker(0).memory().tables();
        for number in 1..workers.count() {
            let others = worker(number).memory().tables();
            for ((_, sum), (_, other)) in tables.iter_mut().zip(others) {
                sum.capacity_bytes += other.capacity_bytes;
            }
        }
        tables
            .into_iter()
            .map(|(name, table)| (name, table.capacity_bytes))
            .chain(self.memory.parts())
            .collect()
    }

    /// What all parts together may take in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let parts = self.memory_parts();
        parts
            .iter()
            .fold(0, |sum: usize, (_, bytes)| sum.saturating_add(*bytes))
    }
}

impl MemoryConfig {
    /// What faces may take for each purpose, in bytes, by the names that status shows them by.
    fn parts(&self) -> [(&'static str, usize); 4] {
        let bytes = [
            self.send_queues_bytes,
            self.receive_buffers_bytes,
            self.reassembly_bytes,
            self.faces_bytes,
        ];
        std::array::from_fn(|i| (MEMORY_PARTS[i], bytes[i]))
    }

    fn check(&self, errors: &mut ConfigErrors) {
        for (name, bytes, least, better) in [
            (
                "send_queues_bytes",
                self.send_queues_bytes,
                1 << 20,
                "use at least 1048576, better 16 MiB for each busy face",
            ),
            (
                "receive_buffers_bytes",
                self.receive_buffers_bytes,
                LEAST_BUFFERS,
                "use at least 16777216, better as much as the content store and 128 MiB",
            ),
            (
                "reassembly_bytes",
                self.reassembly_bytes,
                1 << 20,
                "use at least 1048576, better 64 MiB",
            ),
            (
                "faces_bytes",
                self.faces_bytes,
                1 << 20,
                "use at least 1048576, better 80 KiB for each face",
            ),
        ] {
            if bytes < least {
                let problem = format_args!("{bytes} bytes are too few for all faces");
                errors.add(format!("memory: {name}"), problem, better);
            }
        }
    }
}

impl FaceConfig {
    fn check(&self, at: &str, errors: &mut ConfigErrors) {
        if let Some(e) = self.uri.endpoint() {
            if e.port == 0 {
                errors.add(
                    format!("{at}: uri"),
                    "port 0 leads nowhere",
                    "name the peer's port",
                );
            }
            if let (Some(bind), Host::Ip(ip)) = (self.local_bind, &e.host)
                && bind.is_ipv4() != ip.is_ipv4()
            {
                errors.add(
                    format!("{at}: local_bind"),
                    format_args!("{bind} is of another IP version than the peer's address"),
                    "name a local address of the same version",
                );
            }
        }
        if self.persistency == FacePersistency::OnDemand {
            errors.add(
                format!("{at}: persistency"),
                "on-demand faces are made by peers, not by configuration",
                "use permanent or persistent",
            );
        }
        let (min, max) = self.reconnect;
        if min.is_zero() || max < min {
            errors.add(
                format!("{at}: reconnect"),
                format_args!("the range {min:?} to {max:?} is empty or starts at 0"),
                "give a shortest wait above 0 and a longest wait not below it",
            );
        }
    }
}

impl LinkOptions {
    fn check(&self, at: &str, errors: &mut ConfigErrors) {
        if let Some(mtu) = self.mtu
            && !(576..=65507).contains(&mtu)
        {
            errors.add(
                format!("{at}: mtu"),
                format_args!("{mtu} bytes is out of range"),
                "use 576 to 65507, or leave it out",
            );
        }
        if let Some(dscp) = self.dscp
            && dscp > 63
        {
            errors.add(
                format!("{at}: dscp"),
                format_args!("{dscp} is no code point"),
                "use 0 to 63, or leave it out",
            );
        }
        if !self.ring_bytes.is_power_of_two() || !(64 << 10..=64 << 20).contains(&self.ring_bytes) {
            errors.add(
                format!("{at}: ring_bytes"),
                format_args!(
                    "{} is no power of two from 64 KiB to 64 MiB",
                    self.ring_bytes
                ),
                "use 1048576, the default",
            );
        }
        if self.send_queue_bytes < MAX_JUMBO_PACKET {
            errors.add(
                format!("{at}: send_queue_bytes"),
                format_args!("{} bytes hold no packet", self.send_queue_bytes),
                "use at least 66560, better some MiB",
            );
        }
        for (name, value) in [
            ("reassembly_messages", self.reassembly_messages),
            ("reassembly_bytes", self.reassembly_bytes / MAX_JUMBO_PACKET),
        ] {
            if value == 0 {
                errors.add(
                    format!("{at}: {name}"),
                    "leaves no room for one packet",
                    "use at least 1 message and 66560 bytes",
                );
            }
        }
    }

    fn check_certificate(&self, uri: &FaceUri, at: &str, errors: &mut ConfigErrors) {
        if uri.needs_certificate() && self.tls.is_none() {
            errors.add(
                format!("{at}: tls"),
                "there is no certificate for TLS",
                "give certificate, key and CA, or use another scheme than tls",
            );
        }
    }

    /// The MTU toward a peer of this IP version.
    pub(crate) fn mtu_for(&self, ipv4: bool) -> usize {
        self.mtu.unwrap_or(if ipv4 { 1472 } else { 1452 })
    }
}
