//! Every setting of `trunkline mirror run` and `mirror switch run`, in the order in which sections and settings are explained.

use crate::settings::{Kind, Schema, Section, Setting};

/// All that the configuration of an agent, at a host or at a bridge, may say.
pub const SCHEMA: Schema = Schema {
    sections: &SECTIONS,
    settings: SETTINGS,
};

const SECTIONS: [Section; 4] = [
    Section {
        name: "agent",
        many: false,
        help: "The agent of mirrored replication at a DataNode's host.",
    },
    Section {
        name: "switch",
        many: false,
        help: "The agent of a Linux bridge that mirrors, `trunkline mirror switch run`.",
    },
    Section {
        name: "http",
        many: false,
        help: "Numbers of the agent at a DataNode's host, for Prometheus.",
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
        default: Some("10ms"),
        help: "A retransmission that follows sooner than that on the same segment's last one is left out.",
    },
    Setting {
        section: "switch",
        key: "bridge",
        kind: Kind::Interface,
        default: None,
        help: "The bridge. Needed for `mirror switch run`.",
    },
    Setting {
        section: "switch",
        key: "controller",
        kind: Kind::Server,
        default: Some("http://127.0.0.1:8181"),
        help: "As `agent.controller`.",
    },
    Setting {
        section: "switch",
        key: "token_file",
        kind: Kind::Path,
        default: None,
        help: "As `agent.token_file`.",
    },
    Setting {
        section: "switch",
        key: "ca_file",
        kind: Kind::Path,
        default: None,
        help: "As `agent.ca_file`.",
    },
    Setting {
        section: "switch",
        key: "name",
        kind: Kind::HostName,
        default: None,
        help: "What the controller calls this bridge; no two have one name. Where it is not given, the host's name.",
    },
    Setting {
        section: "switch",
        key: "pin",
        kind: Kind::Path,
        default: Some("/sys/fs/bpf/trunkline-mirror-switch"),
        help: "As `agent.pin`, another folder; each bridge of a host has one of its own.",
    },
    Setting {
        section: "switch",
        key: "listen",
        kind: Kind::Listen,
        default: None,
        help: "Address and port of the bridge's `/metrics`, as `127.0.0.1:8183`; loopback alone. Where it is not given, none is served.",
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
