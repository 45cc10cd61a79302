//! What `nodeOpen` is given, as JSON.

use std::net::IpAddr;

use ndn_packet::Name;
use serde::Deserialize;

use crate::error::{NativeError, Result};
use crate::verify::Verify;

/// Settings of a node. In JSON all but `root` may be absent; an unknown key is
/// an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// URI of the router, such as `tcp://router:6363`; `None` when this node
    /// stands alone.
    pub face: Option<String>,
    /// First components of all our names.
    pub root: Name,
    /// Outgoing faces are bound to this address.
    pub local_address: Option<IpAddr>,
    /// Code point that marks what goes to the router over IP, 0 to 63; `None` leaves it unmarked.
    pub dscp: Option<u8>,
    /// URIs where other nodes may connect.
    pub listen: Vec<String>,
    /// Content store, in bytes. Default 64 MiB.
    pub cs_bytes: usize,
    /// Interests waiting in the forwarder, at most. Default 65,536.
    pub pit_entries: usize,
    /// Segments that all producers together may retain, in bytes. Default
    /// 256 MiB.
    pub retain_bytes: u64,
    /// Segments that all pulls together may have asked for and not handed on, in
    /// bytes. Default 1 GiB.
    pub pull_bytes: u64,
    /// What is checked of pulled segments: `checksums` (the default) or `digest`.
    pub verify: Verify,
    /// What logs, threads and the status call this node. Default `trunkline`.
    pub name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    face: Option<String>,
    root: String,
    #[serde(default)]
    local_address: Option<String>,
    #[serde(default)]
    dscp: Option<u8>,
    #[serde(default)]
    listen: Vec<String>,
    #[serde(default)]
    cs_bytes: Option<u64>,
    #[serde(default)]
    pit_entries: Option<u64>,
    #[serde(default)]
    retain_bytes: Option<u64>,
    #[serde(default)]
    pull_bytes: Option<u64>,
    #[serde(default)]
    verify: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

impl NodeSettings {
    /// A node that stands alone, with defaults.
    pub fn new(root: Name) -> Self {
        NodeSettings {
            face: None,
            root,
            local_address: None,
            dscp: None,
            listen: Vec::new(),
            cs_bytes: 64 << 20,
            pit_entries: 65_536,
            retain_bytes: 256 << 20,
            pull_bytes: 1 << 30,
            verify: Verify::default(),
            name: "trunkline".to_owned(),
        }
    }

    /// Reads the JSON of `nodeOpen`.
    pub fn from_json(json: &str) -> Result<Self> {
        let raw: Raw =
            serde_json::from_str(json).map_err(|e| NativeError::Config(e.to_string()))?;
        let root = parse_name(&raw.root)?;
        if root.is_empty() {
            return Err(NativeError::Config(
                "root: the empty name can't be the root".into(),
            ));
        }
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let address = |text: String| {
            text.parse::<IpAddr>().map_err(|e| {
                NativeError::Config(format!("local_address {text:?}: {e}; give an IP address"))
            })
        };
        let verify = |text: String| {
            Verify::from_name(&text).ok_or_else(|| {
                NativeError::Config(format!("verify {text:?}: give checksums or digest"))
            })
        };
        let default = NodeSettings::new(root);
        Ok(NodeSettings {
            face: filled(raw.face),
            local_address: filled(raw.local_address).map(address).transpose()?,
            dscp: raw.dscp,
            listen: raw.listen,
            cs_bytes: raw.cs_bytes.map_or(default.cs_bytes, |n| n as usize),
            pit_entries: raw.pit_entries.map_or(default.pit_entries, |n| n as usize),
            retain_bytes: raw.retain_bytes.unwrap_or(default.retain_bytes),
            pull_bytes: raw.pull_bytes.unwrap_or(default.pull_bytes),
            verify: filled(raw.verify)
                .map(verify)
                .transpose()?
                .unwrap_or_default(),
            name: filled(raw.name).unwrap_or(default.name),
            root: default.root,
        })
    }
}

/// A name from its URI.
pub fn parse_name(text: &str) -> Result<Name> {
    Name::from_uri(text).map_err(|e| NativeError::Name {
        text: text.to_owned(),
        cause: e.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys() {
        let settings = NodeSettings::from_json(
            r#"{"face":"tcp://10.0.0.1:6363","root":"/hadoop","local_address":"127.0.0.3","dscp":18,
                "listen":["tcp://0.0.0.0:7000"],"cs_bytes":1000,"pit_entries":7,
                "retain_bytes":99,"pull_bytes":98,"name":"dn1","verify":"digest"}"#,
        )
        .unwrap();
        assert_eq!(settings.face.as_deref(), Some("tcp://10.0.0.1:6363"));
        assert_eq!(settings.root, parse_name("/hadoop").unwrap());
        assert_eq!(settings.local_address, Some("127.0.0.3".parse().unwrap()));
        assert_eq!(settings.dscp, Some(18));
        assert_eq!(settings.listen, ["tcp://0.0.0.0:7000"]);
        assert_eq!(
            (
                settings.cs_bytes,
                settings.pit_entries,
                settings.retain_bytes,
                settings.pull_bytes
            ),
            (1000, 7, 99, 98)
        );
        assert_eq!(
            (settings.name.as_str(), settings.verify),
            ("dn1", Verify::Digest)
        );
    }

    #[test]
    fn only_the_root() {
        let settings = NodeSettings::from_json(r#"{"root":"/a/b","face":"","local_address":null}"#);
        assert_eq!(
            settings.unwrap(),
            NodeSettings::new(parse_name("/a/b").unwrap())
        );
    }

    #[test]
    fn refused() {
        for json in [
            "",
            "{}",
            r#"{"root":"/"}"#,
            r#"{"root":"/a","colour":1}"#,
            r#"{"root":"/a","local_address":"here"}"#,
            r#"{"root":"/a","cs_bytes":-1}"#,
            r#"{"root":"/a","dscp":"AF21"}"#,
            r#"{"root":"/a","verify":"no"}"#,
            r#"{"root":"/a/%zz"}"#,
        ] {
            assert!(NodeSettings::from_json(json).is_err(), "{json}");
        }
    }
}
