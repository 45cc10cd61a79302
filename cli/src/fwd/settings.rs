//! Every setting of `trunkline fwd run`, in the order in which sections and settings are explained.

use crate::settings::{Kind, Schema, Section, Setting};
use crate::tls;

/// All that a forwarder's configuration may say.
pub const SCHEMA: Schema = Schema {
    sections: &SECTIONS,
    settings: SETTINGS,
};

/// The sections in the order in which they are explained.
const SECTIONS: [Section; 18] = [
    Section {
        name: "face",
        many: true,
        help: "A link: an address to listen on, or a forwarder to stay connected with. At least one is needed.",
    },
    Section {
        name: "managed_faces",
        many: false,
        help: "Links that commands make, such as `trunkline fwd face create`. The command's own MTU goes before the one here.",
    },
    tls::SECTION,
    Section {
        name: "authorize",
        many: true,
        help: "What other hosts may announce, by the names in their certificates: register prefixes, and be asked by self-learning for names without a route. Where there is one such table, whoever no table is about may announce nothing; where there is none, all may. Applications of this host, and routes in this file, are not asked.",
    },
    Section {
        name: "route",
        many: true,
        help: "A route that is there from the start. Applications register theirs themselves.",
    },
    Section {
        name: "strategy",
        many: true,
        help: "A strategy for a prefix. The longest prefix that fits a name decides.",
    },
    Section {
        name: "workers",
        many: false,
        help: "Threads, each with a part of the tables and some of the links. docs/operate.md says when they pay.",
    },
    Section {
        name: "memory",
        many: false,
        help: "What the router takes in memory at most: the parts below, and some MiB for the program itself.",
    },
    Section {
        name: "send_queues",
        many: false,
        help: "What waits to be sent on all links together.",
    },
    Section {
        name: "outputs",
        many: false,
        help: "Packets on their way from the tables to the links.",
    },
    Section {
        name: "receive_buffers",
        many: false,
        help: "What is read from all links, and what packets that are kept lie in.",
    },
    Section {
        name: "reassembly",
        many: false,
        help: "Packets of all links of which pieces are missing.",
    },
    Section {
        name: "faces",
        many: false,
        help: "The links themselves.",
    },
    Section {
        name: "content_store",
        many: false,
        help: "The cache of Data that passed.",
    },
    Section {
        name: "pit",
        many: false,
        help: "The table of Interests that wait for Data.",
    },
    Section {
        name: "self_learning",
        many: false,
        help: "What the self-learning strategy remembers.",
    },
    Section {
        name: "management",
        many: false,
        help: "What commands may do.",
    },
    Section {
        name: "log",
        many: false,
        help: "What is written to standard error.",
    },
];

/// The settings in the order in which they are explained.
const SETTINGS: &[Setting] = &[
    Setting {
        section: "face",
        key: "listen",
        kind: Kind::FaceUri,
        default: None,
        help: "Take connections here: unix:///path, tcp://address:port, tls://address:port or udp://address:port. One of listen and connect is needed.",
    },
    Setting {
        section: "face",
        key: "connect",
        kind: Kind::FaceUri,
        default: None,
        help: "Stay connected with the forwarder there, or join this multicast group; a link that fails is made again.",
    },
    Setting {
        section: "face",
        key: "local_address",
        kind: Kind::Address,
        default: None,
        help: "With connect: the address of this host to connect from. The system chooses where it is not given.",
    },
    Setting {
        section: "face",
        key: "server_name",
        kind: Kind::HostName,
        default: None,
        help: "With connect to tls://: the name that the other end's certificate must have. The host in connect where it is not given.",
    },
    Setting {
        section: "face",
        key: "mtu",
        kind: Kind::Size {
            min: 576,
            max: 65_507,
        },
        default: None,
        help: "UDP: bytes of the largest datagram; larger packets are split. What fits an Ethernet frame where it is not given.",
    },
    Setting {
        section: "face",
        key: "jumbo",
        kind: Kind::Switch,
        default: Some("true"),
        help: "Offer large packets to the other end, up to 1 MiB over TCP, TLS and Unix sockets, 64 KiB over UDP; one that does not offer them too gets 8800 bytes at most.",
    },
    Setting {
        section: "face",
        key: "shared_memory",
        kind: Kind::Switch,
        default: Some("true"),
        help: "Unix sockets: offer shared memory to the other end; used only if it offers it too.",
    },
    Setting {
        section: "face",
        key: "lend",
        kind: Kind::Choice(&["nobody", "same-user", "anyone"]),
        default: Some("same-user"),
        help: "Shared memory: whose processes may read large packets where they lie, which saves a copy for each. With that a process can see all that this router receives, meant for it or not: those of the router's own user and of root; all that can open the socket; or none, and packets are copied.",
    },
    Setting {
        section: "face",
        key: "ring",
        kind: Kind::Size {
            min: 65_536,
            max: 67_108_864,
        },
        default: Some("1MiB"),
        help: "Shared memory: its bytes in each direction; a power of two. Who connects makes it; who listens takes none larger than its own setting, as long as an eighth of faces.capacity is left, and has all go by the socket otherwise.",
    },
    Setting {
        section: "face",
        key: "send_queue",
        kind: Kind::Size {
            min: 66_560,
            max: 1_073_741_824,
        },
        default: Some("16MiB"),
        help: "Bytes that may wait for the link; what comes beyond is dropped and counted.",
    },
    Setting {
        section: "face",
        key: "mark_threshold",
        kind: Kind::Size {
            min: 0,
            max: 1_073_741_824,
        },
        default: Some("2MiB"),
        help: "Data that waits behind more bytes than this, in the queue of its face and in the system's buffer together, carries a congestion mark. 0 marks none.",
    },
    Setting {
        section: "face",
        key: "socket_buffer",
        kind: Kind::Size {
            min: 4_096,
            max: 1_073_741_824,
        },
        default: Some("4MiB"),
        help: "Kernel buffer asked for on Unix and UDP sockets, in each direction.",
    },
    Setting {
        section: "face",
        key: "dscp",
        kind: Kind::Count { min: 0, max: 63 },
        default: None,
        help: "TCP and UDP: differentiated services code point of the packets sent, so that switches can tell the link's traffic apart. The system's, 0, where it is not given. Marked UDP datagrams are sent one at a time.",
    },
    Setting {
        section: "face",
        key: "reassembly_messages",
        kind: Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        default: Some("128"),
        help: "Split packets of one face that may be incomplete at once.",
    },
    Setting {
        section: "face",
        key: "reassembly",
        kind: Kind::Size {
            min: 66_560,
            max: 1_073_741_824,
        },
        default: Some("8MiB"),
        help: "Bytes that the incomplete packets of one face may hold.",
    },
    Setting {
        section: "face",
        key: "scope",
        kind: Kind::Choice(&["local", "non-local"]),
        default: None,
        help: "Whether the other end counts as being on this host and may use /localhost. Where it is not given, Unix sockets do, and TCP (not TLS) by loopback where listen or connect names a loopback address.",
    },
    Setting {
        section: "face",
        key: "discovery",
        kind: Kind::Switch,
        default: None,
        help: "Whether self-learning may try this link for names without a route. Links to other hosts where it is not given.",
    },
    Setting {
        section: "face",
        key: "max_faces",
        kind: Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        default: Some("4096"),
        help: "With listen: connections that may be open here at once; more are refused and counted.",
    },
    Setting {
        section: "face",
        key: "max_faces_per_address",
        kind: Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        default: None,
        help: "With listen on TCP, TLS or UDP: how many of them peers with one IPv4 address, or in one IPv6 network of 64 bits, may have. A quarter where it is not given.",
    },
    Setting {
        section: "face",
        key: "handshake_timeout",
        kind: Kind::Time {
            min_ms: 100,
            max_ms: 600_000,
        },
        default: Some("10s"),
        help: "With listen on tls://: how long a peer may take to show its certificate.",
    },
    Setting {
        section: "face",
        key: "idle_timeout",
        kind: Kind::Time {
            min_ms: 1_000,
            max_ms: 604_800_000,
        },
        default: Some("10min"),
        help: "With listen on UDP: a peer that is silent for so long is forgotten.",
    },
    Setting {
        section: "face",
        key: "mode",
        kind: Kind::Mode,
        default: None,
        help: "With listen on a Unix socket: who may connect, as permission bits such as 0660. The umask decides where it is not given.",
    },
    Setting {
        section: "face",
        key: "reconnect_min",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 3_600_000,
        },
        default: Some("100ms"),
        help: "With connect: wait before the first attempt to connect again; doubled each time.",
    },
    Setting {
        section: "face",
        key: "reconnect_max",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 3_600_000,
        },
        default: Some("10s"),
        help: "With connect: longest wait between two attempts.",
    },
    Setting {
        section: "managed_faces",
        key: "mtu",
        kind: Kind::Size {
            min: 576,
            max: 65_507,
        },
        default: None,
        help: "UDP: bytes of the largest datagram; larger packets are split. What fits an Ethernet frame where it is not given.",
    },
    Setting {
        section: "managed_faces",
        key: "jumbo",
        kind: Kind::Switch,
        default: Some("true"),
        help: "Offer large packets to the other end, up to 1 MiB over TCP, TLS and Unix sockets, 64 KiB over UDP; one that does not offer them too gets 8800 bytes at most.",
    },
    Setting {
        section: "managed_faces",
        key: "shared_memory",
        kind: Kind::Switch,
        default: Some("true"),
        help: "Unix sockets: offer shared memory to the other end; used only if it offers it too.",
    },
    Setting {
        section: "managed_faces",
        key: "lend",
        kind: Kind::Choice(&["nobody", "same-user", "anyone"]),
        default: Some("same-user"),
        help: "Shared memory: whose processes may read large packets where they lie, which saves a copy for each. With that a process can see all that this router receives, meant for it or not: those of the router's own user and of root; all that can open the socket; or none, and packets are copied.",
    },
    Setting {
        section: "managed_faces",
        key: "ring",
        kind: Kind::Size {
            min: 65_536,
            max: 67_108_864,
        },
        default: Some("1MiB"),
        help: "Shared memory: its bytes in each direction; a power of two. Who connects makes it; who listens takes none larger than its own setting, as long as an eighth of faces.capacity is left, and has all go by the socket otherwise.",
    },
    Setting {
        section: "managed_faces",
        key: "send_queue",
        kind: Kind::Size {
            min: 66_560,
            max: 1_073_741_824,
        },
        default: Some("16MiB"),
        help: "Bytes that may wait for the link; what comes beyond is dropped and counted.",
    },
    Setting {
        section: "managed_faces",
        key: "mark_threshold",
        kind: Kind::Size {
            min: 0,
            max: 1_073_741_824,
        },
        default: Some("2MiB"),
        help: "Data that waits behind more bytes than this, in the queue of its face and in the system's buffer together, carries a congestion mark. 0 marks none.",
    },
    Setting {
        section: "managed_faces",
        key: "socket_buffer",
        kind: Kind::Size {
            min: 4_096,
            max: 1_073_741_824,
        },
        default: Some("4MiB"),
        help: "Kernel buffer asked for on Unix and UDP sockets, in each direction.",
    },
    Setting {
        section: "managed_faces",
        key: "dscp",
        kind: Kind::Count { min: 0, max: 63 },
        default: None,
        help: "TCP and UDP: differentiated services code point of the packets sent, so that switches can tell the link's traffic apart. The system's, 0, where it is not given. Marked UDP datagrams are sent one at a time.",
    },
    Setting {
        section: "managed_faces",
        key: "reassembly_messages",
        kind: Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        default: Some("128"),
        help: "Split packets of one face that may be incomplete at once.",
    },
    Setting {
        section: "managed_faces",
        key: "reassembly",
        kind: Kind::Size {
            min: 66_560,
            max: 1_073_741_824,
        },
        default: Some("8MiB"),
        help: "Bytes that the incomplete packets of one face may hold.",
    },
    Setting {
        section: "managed_faces",
        key: "scope",
        kind: Kind::Choice(&["local", "non-local"]),
        default: None,
        help: "Whether the other end counts as being on this host and may use /localhost. The address tells where it is not given.",
    },
    Setting {
        section: "managed_faces",
        key: "discovery",
        kind: Kind::Switch,
        default: None,
        help: "Whether self-learning may try this link for names without a route. Links to other hosts where it is not given.",
    },
    tls::CERTIFICATE,
    tls::KEY,
    tls::CA,
    Setting {
        section: "authorize",
        key: "certificate",
        kind: Kind::PeerPattern,
        default: None,
        help: "A name in the certificate; *.rack1 for all hosts of a domain, * for whoever has a certificate of the CA. Needed.",
    },
    Setting {
        section: "authorize",
        key: "prefixes",
        kind: Kind::Names,
        default: None,
        help: "Names under these may be announced. Needed.",
    },
    Setting {
        section: "route",
        key: "prefix",
        kind: Kind::Name,
        default: None,
        help: "The prefix. Needed.",
    },
    Setting {
        section: "route",
        key: "nexthop",
        kind: Kind::FaceUri,
        default: None,
        help: "The connect address of a [[face]] in this file. Needed.",
    },
    Setting {
        section: "route",
        key: "cost",
        kind: Kind::Count {
            min: 0,
            max: 4_294_967_295,
        },
        default: Some("0"),
        help: "The lower, the sooner it is tried.",
    },
    Setting {
        section: "strategy",
        key: "prefix",
        kind: Kind::Name,
        default: None,
        help: "The prefix. Needed.",
    },
    Setting {
        section: "strategy",
        key: "name",
        kind: Kind::Strategy,
        default: None,
        help: "best-route, multicast, self-learning, or a strategy's full name. Needed.",
    },
    Setting {
        section: "strategy",
        key: "group",
        kind: Kind::Count { min: 1, max: 63 },
        default: None,
        help: "For self-learning: names that share so many first components are of one object, such as a block. It is looked for once, and where it went when it was written is asked first. Of the names of Hadoop's blocks 3 and the components of trunkline.ndn.root. Names that share all but the last component where it is not given.",
    },
    Setting {
        section: "workers",
        key: "count",
        kind: Kind::Count { min: 1, max: 64 },
        default: Some("1"),
        help: "Workers, a thread each; best no more than there are cores. The bounds of all tables are those of all workers together.",
    },
    Setting {
        section: "workers",
        key: "prefix_components",
        kind: Kind::Count { min: 1, max: 32 },
        default: Some("4"),
        help: "Names whose first so many components are the same are one worker's, as are names that differ in their last component alone. 4 is a block of HDFS: /hadoop/blocks/<pool>/<block>.",
    },
    Setting {
        section: "memory",
        key: "capacity",
        kind: Kind::Size {
            min: 33_554_432,
            max: 70_368_744_177_664,
        },
        default: None,
        help: "Bytes that all parts may come to; a configuration whose parts come to more is refused. What the parts come to where it is not given.",
    },
    Setting {
        section: "send_queues",
        key: "capacity",
        kind: Kind::Size {
            min: 1_048_576,
            max: 17_592_186_044_416,
        },
        default: Some("256MiB"),
        help: "Bytes that may wait for all links. The shorter the room, the shorter each queue may be: packets for the longest are dropped first, and counted.",
    },
    Setting {
        section: "outputs",
        key: "capacity",
        kind: Kind::Size {
            min: 8_388_608,
            max: 17_592_186_044_416,
        },
        default: Some("64MiB"),
        help: "Bytes that may wait; links are read no further while 4 MiB do, and what comes beyond all of them is dropped and counted.",
    },
    Setting {
        section: "receive_buffers",
        key: "capacity",
        kind: Kind::Size {
            min: 16_777_216,
            max: 17_592_186_044_416,
        },
        default: None,
        help: "Bytes of buffers. When packets hold on to most of them, more packets are copied out of theirs. As much as the content store and 128 MiB where it is not given.",
    },
    Setting {
        section: "reassembly",
        key: "capacity",
        kind: Kind::Size {
            min: 1_048_576,
            max: 17_592_186_044_416,
        },
        default: Some("64MiB"),
        help: "Bytes that they may take, whole packets above 64 KiB that are still coming in included, which take half of it at most and are dropped where there is no room. The link with most pieces is the first whose oldest are given up.",
    },
    Setting {
        section: "faces",
        key: "capacity",
        kind: Kind::Size {
            min: 1_048_576,
            max: 17_592_186_044_416,
        },
        default: Some("256MiB"),
        help: "Bytes that they may take: 24 KiB each, 56 KiB more for a stream with jumbo packets, 98 KiB for one over TLS, two rings for one with shared memory. Beyond, peers are refused and counted, and get neither of the two.",
    },
    Setting {
        section: "content_store",
        key: "capacity",
        kind: Kind::Size {
            min: 0,
            max: 17_592_186_044_416,
        },
        default: Some("256MiB"),
        help: "Bytes of packets kept, with the store's own entries. 0 keeps nothing.",
    },
    Setting {
        section: "content_store",
        key: "policy",
        kind: Kind::Choice(&["lru", "s3-fifo"]),
        default: Some("lru"),
        help: "What goes first when it is full: lru what was not asked for the longest, s3-fifo what came once and was not asked for again.",
    },
    Setting {
        section: "content_store",
        key: "copy_below",
        kind: Kind::Size {
            min: 1_024,
            max: 66_560,
        },
        default: Some("4KiB"),
        help: "Packets smaller than this are copied, so that one of them does not keep the buffer it came in.",
    },
    Setting {
        section: "pit",
        key: "capacity",
        kind: Kind::Count {
            min: 1,
            max: 2_147_483_648,
        },
        default: Some("262144"),
        help: "Interests that may wait in all; more are dropped and counted. A face may have as many as are left to others: when some ask without end, each holds an equal share, and one more share is free.",
    },
    Setting {
        section: "pit",
        key: "per_face",
        kind: Kind::Count {
            min: 1,
            max: 2_147_483_648,
        },
        default: Some("65536"),
        help: "Interests of one face that may wait, however many are left.",
    },
    Setting {
        section: "pit",
        key: "memory",
        kind: Kind::Size {
            min: 65_536,
            max: 17_592_186_044_416,
        },
        default: Some("128MiB"),
        help: "Bytes that waiting Interests may take in all. They are shared as their number is; an Interest that goes to many faces is charged, with all that is noted of it, to the one that asked.",
    },
    Setting {
        section: "pit",
        key: "max_lifetime",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 86_400_000,
        },
        default: Some("2min"),
        help: "An Interest that asks to wait longer waits so long.",
    },
    Setting {
        section: "pit",
        key: "nonces",
        kind: Kind::Count {
            min: 1,
            max: 2_147_483_648,
        },
        default: Some("262144"),
        help: "Nonces of finished Interests that are remembered to detect loops.",
    },
    Setting {
        section: "pit",
        key: "nonce_lifetime",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 3_600_000,
        },
        default: Some("6s"),
        help: "How long such a nonce is remembered.",
    },
    Setting {
        section: "pit",
        key: "suppression_min",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 60_000,
        },
        default: Some("10ms"),
        help: "An Interest that is sent again within this time is not forwarded again; doubled each time.",
    },
    Setting {
        section: "pit",
        key: "suppression_max",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 60_000,
        },
        default: Some("250ms"),
        help: "The longest such time.",
    },
    Setting {
        section: "self_learning",
        key: "capacity",
        kind: Kind::Count {
            min: 1,
            max: 2_147_483_648,
        },
        default: Some("65536"),
        help: "Prefixes whose face is remembered; the longest unused go first.",
    },
    Setting {
        section: "self_learning",
        key: "memory",
        kind: Kind::Size {
            min: 65_536,
            max: 16 << 40,
        },
        default: Some("32MiB"),
        help: "Bytes that what is remembered may take, names included.",
    },
    Setting {
        section: "self_learning",
        key: "flood_interval",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 60_000,
        },
        default: Some("50ms"),
        help: "After one Interest was sent to all faces, others under its prefix wait so long for what it teaches.",
    },
    Setting {
        section: "management",
        key: "max_routes",
        kind: Kind::Count {
            min: 1,
            max: 1_000_000_000,
        },
        default: Some("4000000"),
        help: "Routes that commands may make in all.",
    },
    Setting {
        section: "management",
        key: "memory",
        kind: Kind::Size {
            min: 1 << 20,
            max: 16 << 40,
        },
        default: Some("1GiB"),
        help: "Bytes that routes, the FIB and strategy choices may take before commands that add to them are refused.",
    },
    Setting {
        section: "management",
        key: "localhop",
        kind: Kind::Switch,
        default: Some("false"),
        help: "Let other hosts register prefixes that lead back to them (/localhop/nfd/rib). True where it is not given and there is an [[authorize]].",
    },
    Setting {
        section: "management",
        key: "key",
        kind: Kind::Path,
        default: None,
        help: "Public key, as trunkline keygen writes it, of who alone on this host may command this router and register prefixes at it, as --command-key signs. Anybody who may open its Unix socket where it is not given. What other hosts may register is for localhop and [[authorize]].",
    },
    Setting {
        section: "management",
        key: "max_age",
        kind: Kind::Time {
            min_ms: 1_000,
            max_ms: 86_400_000,
        },
        default: Some("2min"),
        help: "How far the clock of who signs a command may be from this host's.",
    },
    Setting {
        section: "log",
        key: "level",
        kind: Kind::LogFilter,
        default: Some("info"),
        help: "error, warn, info, debug or trace, for all or by part: info,ndn_io=debug.",
    },
];
