//! `trunkline hadoop conf ndn|ucx|mirror`: the properties that put HDFS on named data or on RDMA, or that have
//! switches copy its writes, with a line on each.

use std::fmt::Write as _;

use ndn_io::FaceUri;
use serde_json::{Map, Value};

use crate::args::ConfFormat;
use crate::error::CliError;
use crate::output;

/// A router on the same host, for readers who have not chosen one yet.
const EXAMPLE_FACE: &str = "tcp://router.example.org:6363";

/// Likewise a controller.
const EXAMPLE_CONTROLLER: &str = "http://controller.example.org:8181";

const SOCKET_FACTORY: (&str, &str) = (
    "hadoop.rpc.socket.factory.class.default",
    "io.trunkline.hadoop.TrunklineSocketFactory",
);
const DATANODE_PLUGIN: (&str, &str) = (
    "dfs.datanode.plugins",
    "org.apache.hadoop.hdfs.server.datanode.TrunklineDataNodePlugin",
);
const PACKET_SIZE: &str = "dfs.client-write-packet-size";
/// The data of a packet of [`NDN_PACKET_BYTES`].
const LARGE_SEGMENT_BYTES: &str = "516096";
/// 1,008 chunks of 516 bytes with their checksums, and the 33 bytes that HDFS reserves for a packet's header: eight
/// segments of default size, or one of 516,096 bytes. Each record, acknowledgement and wake-up then serves eight.
const NDN_PACKET_BYTES: &str = "520161";
/// The best of the SC 2012 paper's sweep over RDMA (its Table I).
const UCX_PACKET_BYTES: &str = "524288";
const PACKETS_IN_FLIGHT: &str = "dfs.client.write.max-packets-in-flight";
/// 8 MiB in packets of either plane. Hadoop's default, 80, is 5 MiB in its packets of 64 KiB, but 40 MiB in
/// ours: live all the time, so that a young collection copies them, or promotes them and a full one follows.
const PACKETS: &str = "16";
const BUFFER_SIZE: &str = "io.file.buffer.size";
/// `hdfs dfs -put` and `-get` copy in pieces of this size, and `BlockSender` re-replicates in packets
/// of it. Hadoop's default is 4096, a system call and a pass through three streams for each page.
/// By name it is two segments, so that what is re-replicated has the segments that readers ask for.
const NDN_BUFFER_BYTES: &str = "129024";
const UCX_BUFFER_BYTES: &str = "131072";

const CORE_SITE: &str = "core-site.xml";
const HDFS_SITE: &str = "hdfs-site.xml";
/// Each file, and what is to be known of it.
const SITES: [(&str, &str); 2] = [
    (
        CORE_SITE,
        "on every host that has trunkline-hadoop.jar on Hadoop's class path",
    ),
    (
        HDFS_SITE,
        "on the same hosts; in core-site.xml HDFS's own defaults would replace some of these",
    ),
];

struct Property {
    name: &'static str,
    value: String,
    comment: &'static str,
}

impl Property {
    /// The file it belongs in. Hadoop reads `core-site.xml`, `hdfs-default.xml`, `hdfs-site.xml`, in this order: what
    /// has a default in the second (`dfs.client-write-packet-size`) can be set in the third alone.
    fn site(&self) -> &'static str {
        if self.name.starts_with("dfs.") {
            HDFS_SITE
        } else {
            CORE_SITE
        }
    }
}

fn property(name: &'static str, value: &str, comment: &'static str) -> Property {
    Property {
        name,
        value: value.to_owned(),
        comment,
    }
}

fn buffer_size(bytes: &str) -> Property {
    property(
        BUFFER_SIZE,
        bytes,
        "All: bytes that clients copy at a time, and that DataNodes re-replicate in a packet; Hadoop's default is 4096.",
    )
}

fn packets_in_flight() -> Property {
    property(
        PACKETS_IN_FLIGHT,
        PACKETS,
        "Clients: most packets that wait for acknowledgement, in the heap; Hadoop's default, 80, is for small ones.",
    )
}

/// What a cluster with SASL or encryption needs besides.
fn secure_property() -> Property {
    property(
        "dfs.trustedchannel.resolver.class",
        "io.trunkline.hadoop.TrunklineTrustedChannelResolver",
        "All: tells HDFS which connections the plug-in has secured by the block token; all others keep Hadoop's handshake.",
    )
}

/// One segment for each packet, for hosts with routers of their own.
fn large_segments() -> Property {
    property(
        "trunkline.ndn.segment.bytes",
        LARGE_SEGMENT_BYTES,
        "All: data bytes of a segment, here those of a packet; for links of 10 Gbit/s or more, not for HBase nor over UDP.",
    )
}

fn ndn_properties(face: &str, secure: bool, large: bool) -> Vec<Property> {
    let mut properties = vec![
        property(
            SOCKET_FACTORY.0,
            SOCKET_FACTORY.1,
            "Clients and DataNodes: opens data connections, and publishes blocks by name where the other end can pull them.",
        ),
        property(
            DATANODE_PLUGIN.0,
            DATANODE_PLUGIN.1,
            "DataNodes: takes block writes by name and answers reads by name.",
        ),
        property(
            "dfs.client.replica.accessor.builder.classes",
            "io.trunkline.hadoop.read.NamedReplicaAccessorBuilder",
            "Clients: reads blocks by name, from whichever cache or DataNode answers first.",
        ),
        property(
            "trunkline.ndn.face",
            face,
            "All: the router that every host connects to; empty means the process's own forwarder alone.",
        ),
        property(
            "trunkline.ndn.root",
            "/hadoop",
            "All: the name under which this cluster's names stand; one a cluster.",
        ),
        property(
            "trunkline.transport",
            "ndn,tcp",
            "All: which transports are tried, in this order; `tcp` alone turns named data off.",
        ),
        property(
            PACKET_SIZE,
            NDN_PACKET_BYTES,
            "Clients: bytes of an HDFS packet; eight segments cost less CPU than the one of Hadoop's default, 65536.",
        ),
        packets_in_flight(),
        buffer_size(NDN_BUFFER_BYTES),
    ];
    if large {
        properties.push(large_segments());
    }
    if secure {
        properties.push(secure_property());
    }
    properties
}

fn ucx_properties() -> Vec<Property> {
    vec![
        property(
            SOCKET_FACTORY.0,
            SOCKET_FACTORY.1,
            "Clients and DataNodes: opens data connections over UCX where the other end listens on it.",
        ),
        property(
            DATANODE_PLUGIN.0,
            DATANODE_PLUGIN.1,
            "DataNodes: listens for data connections over UCX.",
        ),
        property(
            "trunkline.transport",
            "ucx,tcp",
            "All: which transports are tried, in this order; `tcp` alone turns UCX off.",
        ),
        property(
            "trunkline.ucx.address",
            "0.0.0.0:0",
            "DataNodes: where data connections over UCX are taken; on a host with several networks, the RDMA NIC's address.",
        ),
        property(
            PACKET_SIZE,
            UCX_PACKET_BYTES,
            "Clients: bytes of an HDFS packet; 512 KiB is best over RDMA, 64 KiB, Hadoop's default, over 1 Gbit/s Ethernet.",
        ),
        packets_in_flight(),
        buffer_size(UCX_BUFFER_BYTES),
    ]
}

fn mirror_properties(controller: &str) -> Vec<Property> {
    vec![
        property(
            SOCKET_FACTORY.0,
            SOCKET_FACTORY.1,
            "DataNodes: opens data connections, by stock TCP, and reports those of a pipeline. Clients need none of these.",
        ),
        property(
            DATANODE_PLUGIN.0,
            DATANODE_PLUGIN.1,
            "DataNodes: says in the log at the start what is wrong with the properties below.",
        ),
        property(
            "trunkline.transport",
            "mirror,tcp",
            "DataNodes: which transports are tried, in this order; `tcp` alone turns the reports off.",
        ),
        property(
            "trunkline.mirror.controller",
            controller,
            "DataNodes: the REST interface of the controller, which has switches copy what is written.",
        ),
    ]
}

/// Prints the properties for named data.
///
/// # Errors
/// A usage error for a face URI that is none, or by which no large segments go.
pub fn ndn(
    face: Option<&str>,
    secure: bool,
    large: bool,
    format: ConfFormat,
) -> Result<(), CliError> {
    if let Some(face) = face {
        let uri =
            FaceUri::parse(face).map_err(|e| crate::forwarder::bad_uri("--face", face, &e))?;
        if uri.needs_certificate() {
            return Err(CliError::usage(
                format!("--face {uri}"),
                "the plug-in has no settings for certificates",
            )
            .or("run a router on each host: give its unix:// or tcp:// address here, and have it connect by tls:// (docs/tls.md)"));
        }
        if large && uri.face_type() == "udp" {
            return Err(CliError::usage(
                format!("--face {uri} with --large-segments"),
                "UDP carries packets of 64 KiB at most",
            )
            .or("reach the router by unix:// or tcp://"));
        }
    }
    print(
        &ndn_properties(face.unwrap_or(EXAMPLE_FACE), secure, large),
        format,
    );
    Ok(())
}

/// Prints the properties for UCX.
pub fn ucx(format: ConfFormat) {
    print(&ucx_properties(), format);
}

/// Prints the properties for mirrored replication.
///
/// # Errors
/// A usage error for a controller's URL that is none.
pub fn mirror(controller: Option<&str>, format: ConfFormat) -> Result<(), CliError> {
    if let Some(url) = controller {
        crate::qos::address(url)?;
    }
    print(
        &mirror_properties(controller.unwrap_or(EXAMPLE_CONTROLLER)),
        format,
    );
    Ok(())
}

fn print(properties: &[Property], format: ConfFormat) {
    output::line(
        match format {
            ConfFormat::Xml => xml(properties),
            ConfFormat::Properties => plain(properties),
            ConfFormat::Json => json(properties),
        }
        .trim_end(),
    );
}

/// The properties by file, in the order of [`SITES`].
fn by_site(
    properties: &[Property],
) -> impl Iterator<Item = (&'static str, &'static str, Vec<&Property>)> {
    SITES.iter().map(|&(site, note)| {
        let own = properties.iter().filter(|p| p.site() == site).collect();
        (site, note, own)
    })
}

fn xml(properties: &[Property]) -> String {
    let mut text = String::new();
    for (site, note, own) in by_site(properties) {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}<!-- {site}, {note} -->");
        for p in own {
            let _ = writeln!(text, "<!-- {} -->", p.comment);
            let _ = writeln!(
                text,
                "<property>\n  <name>{}</name>\n  <value>{}</value>\n</property>",
                p.name,
                escape(&p.value)
            );
        }
    }
    text
}

fn escape(value: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn plain(properties: &[Property]) -> String {
    let mut text = String::new();
    for p in properties {
        let _ = writeln!(text, "# {}\n{}={}", p.comment, p.name, p.value);
    }
    text
}

fn json(properties: &[Property]) -> String {
    let files: Map<String, Value> = by_site(properties)
        .map(|(site, _, own)| {
            let own: Map<String, Value> = own
                .into_iter()
                .map(|p| (p.name.to_owned(), Value::from(p.value.clone())))
                .collect();
            (site.to_owned(), Value::Object(own))
        })
        .collect();
    format!("{:#}", Value::Object(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_property_has_a_comment_of_one_line() {
        for p in ndn_properties(EXAMPLE_FACE, true, true)
            .into_iter()
            .chain(ucx_properties())
            .chain(mirror_properties(EXAMPLE_CONTROLLER))
        {
            assert!(
                !p.comment.is_empty() && !p.comment.contains('\n') && !p.comment.contains("--"),
                "{}",
                p.name
            );
        }
    }

    #[test]
    fn forms_carry_the_face() {
        let list = ndn_properties("tcp://10.0.0.1:6363", false, false);
        assert!(xml(&list).contains("<value>tcp://10.0.0.1:6363</value>"));
        assert!(plain(&list).contains("\ntrunkline.ndn.face=tcp://10.0.0.1:6363\n"));
        let parsed: Value = serde_json::from_str(&json(&list)).expect("JSON");
        assert_eq!(
            parsed[CORE_SITE]["trunkline.ndn.face"],
            "tcp://10.0.0.1:6363"
        );
    }

    #[test]
    fn what_hdfs_has_defaults_of_stands_in_the_file_that_is_read_after_them() {
        for list in [
            ndn_properties(EXAMPLE_FACE, true, true),
            ucx_properties(),
            mirror_properties(EXAMPLE_CONTROLLER),
        ] {
            let text = xml(&list);
            let (core, hdfs) = text
                .split_once(&format!("<!-- {HDFS_SITE}, "))
                .expect("two files");
            assert!(core.starts_with(&format!("<!-- {CORE_SITE}, ")), "{core}");
            assert!(!core.contains("<name>dfs."));
            for p in &list {
                let element = format!("<name>{}</name>", p.name);
                assert_eq!(
                    hdfs.contains(&element),
                    p.name.starts_with("dfs."),
                    "{element}"
                );
                assert_eq!(text.matches(&element).count(), 1, "{element}");
            }
        }
    }

    #[test]
    fn the_resolver_is_for_clusters_that_need_it() {
        let has =
            |secure| json(&ndn_properties(EXAMPLE_FACE, secure, false)).contains("TrustedChannel");
        assert!(has(true));
        assert!(!has(false));
    }
}
