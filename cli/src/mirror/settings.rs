//! Every setting of `trunkline mirror run`, in the order in which sections and settings are explained.

use crate::settings::{Kind, Schema, Section, Setting};

/// All that an agent's configuration may say.
pub const SCHEMA: Schema = Schema {
    sections: &SECTIONS,
    settings: SETTINGS,
};

const SECTIONS: [Section; 3] = [
    Section {
        name: "agent",
        many: false,
        help: "The agent of mirrored replication at a DataNode's host.",
    },
    Section {
        name: "http",
        many: false,
        help: "Its numbers, for Prometheus.",
    },
    Section {
        name: "log",
        many: false,
        help: "The log, on standard error.",
    },
];

const SETTINGS: &[Setting] = &[
    Setting {
        section: "agent",
        key: "interfaces",
        kind: Kind::Names,
        default: None,
        help: "The interfaces by which DataNodes are reached, as `[\"eth0\"]`. Needed.",
    },
    Setting {
        section: "agent",
        key: "controller",
        kind: Kind::Server,
        default: Some("http://127.0.0.1:8181"),
        help: "URL of the controller's REST interface.",
    },
    Setting {
        section: "agent",
        key: "token_file",
        kind: Kind::Path,
        default: None,
        help: "File with the bearer token that the controller wants, this agent's own where it has one for each; nobody else may read it.",
    },
    Setting {
        section: "agent",
        key: "ca_file",
        kind: Kind::Path,
        default: None,
        help: "Certificates in PEM that an https controller is checked against. Where it is not given, those that browsers trust.",
    },
    Setting {
        section: "agent",
        key: "name",
        kind: Kind::HostName,
        default: None,
        help: "What the controller calls this agent; no two have one name. Where it is not given, the host's name.",
    },
    Setting {
        section: "agent",
        key: "data_ports",
        kind: Kind::Ports { most: 4 },
        default: Some("9866"),
        help: "Ports of `dfs.datanode.address` of this host's DataNodes: of connections to these the start of the stream is remembered.",
    },
    Setting {
        section: "agent",
        key: "pin",
        kind: Kind::Path,
        default: Some("/sys/fs/bpf/trunkline-mirror"),
        help: "Folder in a BPF filesystem where programs and maps are pinned, so that they stay when the agent does not.",
    },
    Setting {
        section: "agent",
        key: "forget",
        kind: Kind::Time {
            min_ms: 1_000,
            max_ms: 86_400_000,
        },
        default: Some("60s"),
        help: "A connection that the controller does not list any more, and on which nothing was seen for so long, is forgotten; one that has ended after 2 s.",
    },
    Setting {
        section: "agent",
        key: "repeat",
        kind: Kind::Time {
            min_ms: 0,
            max_ms: 200,
        },
        default: Some("8ms"),
        help: "A retransmission that follows sooner than that on the same segment's last one is left out.",
    },
    Setting {
        section: "http",
        key: "listen",
        kind: Kind::Listen,
        default: None,
        help: "Address and port of `/metrics`, as `127.0.0.1:8182`; loopback alone. Where it is not given, none is served.",
    },
    Setting {
        section: "log",
        key: "level",
        kind: Kind::LogFilter,
        default: Some("info"),
        help: "error, warn, info, debug or trace, for all or by module as in `info,trunkline_mirror=debug`. `-v` and TRUNKLINE_LOG go before it.",
    },
];
