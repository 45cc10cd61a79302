//! Every setting of `trunkline repo run`, in the order in which sections and settings are explained.

use crate::settings::{Kind, Schema, Section, Setting};
use crate::tls;

/// All that a repository's configuration may say.
pub const SCHEMA: Schema = Schema {
    sections: SECTIONS,
    settings: SETTINGS,
};

const SECTIONS: &[Section] = &[
    Section {
        name: "repo",
        many: false,
        help: "The repository.",
    },
    Section {
        name: "serve",
        many: true,
        help: "A prefix that is registered with the forwarder: what is under it is served. At least one is needed to run.",
    },
    tls::SECTION,
    Section {
        name: "insert",
        many: false,
        help: "Bounds of insertions by the repo protocol.",
    },
    Section {
        name: "http",
        many: false,
        help: "The HTTP server: a page that shows what is served, and the files behind it. Off unless `listen` is given.",
    },
    Section {
        name: "mount",
        many: false,
        help: "The repository as a file system: by `repo run`, where `directory` is given, or by `trunkline mount`.",
    },
    Section {
        name: "store",
        many: false,
        help: "A Hadoop cluster whose files are published, read-only, see [repo.md](repo.md#files-of-a-hadoop-cluster). None unless `url` is given.",
    },
    Section {
        name: "log",
        many: false,
        help: "What is written to standard error.",
    },
];

const SETTINGS: &[Setting] = &[
    Setting {
        section: "repo",
        key: "directory",
        kind: Kind::Path,
        default: None,
        help: "The folder that holds everything; made at the first use. Needed.",
    },
    Setting {
        section: "repo",
        key: "key",
        kind: Kind::Key,
        default: None,
        help: "The owner's key, which signs what is published. Where it is not given, ed25519:owner.key in the directory, made at the first use.",
    },
    Setting {
        section: "repo",
        key: "face",
        kind: Kind::FaceUri,
        default: None,
        help: "The forwarder to register with. Where it is not given, what TRUNKLINE_FACE or NFD's client.conf says, else unix:///run/nfd/nfd.sock.",
    },
    Setting {
        section: "repo",
        key: "command_key",
        kind: Kind::Key,
        default: None,
        help: "How commands to that forwarder are signed, where it obeys one key alone (its management.key). By digest where it is not given.",
    },
    Setting {
        section: "repo",
        key: "name",
        kind: Kind::Name,
        default: None,
        help: "The repository's own name: commands of the repo protocol come under it. Where it is not given, none are taken.",
    },
    Setting {
        section: "repo",
        key: "trust",
        kind: Kind::Path,
        default: None,
        help: "The trust policy: which keys may insert and delete under which prefixes. Where it is not given, the owner's key alone may.",
    },
    Setting {
        section: "repo",
        key: "segment_size",
        kind: Kind::Size {
            min: 1,
            max: ndn_repo::MAX_SEGMENT_BYTES as u64,
        },
        default: Some("8000"),
        help: "Bytes of content in each segment of files that are put: 8000 pass everywhere, more only between forwarders that agree on jumbo packets.",
    },
    Setting {
        section: "repo",
        key: "freshness",
        kind: Kind::Time {
            min_ms: 1,
            max_ms: 86_400_000,
        },
        default: Some("10s"),
        help: "How long caches may call a segment fresh, of files that are put.",
    },
    Setting {
        section: "repo",
        key: "log_size",
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 32,
        },
        default: Some("1GiB"),
        help: "Size of a segment log, in which packets are kept as they came. Smaller ones give room back sooner, larger ones keep the index small.",
    },
    Setting {
        section: "serve",
        key: "prefix",
        kind: Kind::Name,
        default: None,
        help: "The prefix. Needed.",
    },
    tls::CERTIFICATE,
    tls::KEY,
    tls::CA,
    Setting {
        section: "insert",
        key: "stall",
        kind: Kind::Time {
            min_ms: 100,
            max_ms: 3_600_000,
        },
        default: Some("10s"),
        help: "How long a producer may send nothing before its insertion is given up.",
    },
    Setting {
        section: "insert",
        key: "max_size",
        kind: Kind::Size {
            min: 1,
            max: 1 << 50,
        },
        default: Some("1TiB"),
        help: "Bytes that one insertion may bring.",
    },
    Setting {
        section: "insert",
        key: "max_running",
        kind: Kind::Count { min: 1, max: 1024 },
        default: Some("16"),
        help: "Insertions that may go on at once.",
    },
    Setting {
        section: "http",
        key: "listen",
        kind: Kind::Listen,
        default: None,
        help: "The address and port that it listens on, as 127.0.0.1:8080; port 0 takes a free one. `--http` goes before it.",
    },
    Setting {
        section: "http",
        key: "anyone",
        kind: Kind::Switch,
        default: Some("false"),
        help: "Allows an address other than loopback. Whoever reaches it reads all that is served, unencrypted.",
    },
    Setting {
        section: "http",
        key: "host",
        kind: Kind::HostName,
        default: None,
        help: "The host name by which browsers come, where it is not localhost or an address. Others are refused: a stranger's name may have been rebound to this address.",
    },
    Setting {
        section: "http",
        key: "max_connections",
        kind: Kind::Count { min: 1, max: 256 },
        default: Some("64"),
        help: "Connections at once; further ones wait.",
    },
    Setting {
        section: "mount",
        key: "directory",
        kind: Kind::Path,
        default: None,
        help: "The folder at which `repo run` mounts it; there, and empty. `--mount` goes before it.",
    },
    Setting {
        section: "mount",
        key: "prefix",
        kind: Kind::Name,
        default: Some("/"),
        help: "What is mounted: the files under this name.",
    },
    Setting {
        section: "mount",
        key: "versions",
        kind: Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        default: None,
        help: "Versions kept of each file that is written there. Where it is not given, all are, until `repo rm --keep`.",
    },
    Setting {
        section: "mount",
        key: "allow_other",
        kind: Kind::Switch,
        default: Some("false"),
        help: "Whether other users may use it, as the files' modes say.",
    },
    Setting {
        section: "store",
        key: "url",
        kind: Kind::Hdfs,
        default: None,
        help: "Which folder of which cluster. `--store` goes before it.",
    },
    Setting {
        section: "store",
        key: "prefix",
        kind: Kind::Name,
        default: None,
        help: "Under which name it is published, and nothing else is. It must be under a prefix that is served; where it is not given, it is the first of those.",
    },
    Setting {
        section: "store",
        key: "web",
        kind: Kind::HostPorts,
        default: None,
        help: "The NameNode's HTTP address, `dfs.namenode.http-address`; those of all NameNodes, with commas between, where one stands by for another. Where it is not given, port 9870 of the host in `url`.",
    },
    Setting {
        section: "store",
        key: "user",
        kind: Kind::UserName,
        default: Some("trunkline"),
        help: "As whom the NameNode is asked: what this user may read is published, to everybody.",
    },
    Setting {
        section: "store",
        key: "root",
        kind: Kind::Name,
        default: Some("/hadoop"),
        help: "`trunkline.ndn.root` of the cluster.",
    },
    Setting {
        section: "store",
        key: "block_segment_size",
        kind: Kind::Size {
            min: 512,
            max: 1_032_192,
        },
        default: Some("64512"),
        help: "`trunkline.ndn.segment.bytes` of the cluster.",
    },
    Setting {
        section: "store",
        key: "signatures",
        kind: Kind::Choice(&["batch", "each"]),
        default: Some("batch"),
        help: "batch: up to 64 segments, of 512 KiB together, have one signature, and each a digest; `get`, mounts and repositories of Trunkline verify it, other programs the digest alone. each: every segment has its own, which others verify, too, at three times the CPU.",
    },
    Setting {
        section: "log",
        key: "level",
        kind: Kind::LogFilter,
        default: Some("info"),
        help: "error, warn, info, debug or trace, for all or by module as in `info,ndn_repo=debug`. `-v` and TRUNKLINE_LOG go before it.",
    },
];
