//! What a router leaves open to whoever reaches it, said once when it starts.

use ndn_io::{FaceUri, NodeConfig};

/// A line for the log where other hosts may connect without a certificate and nothing bounds what they announce.
pub fn warning(node: &NodeConfig) -> Option<String> {
    if node.forwarder.prefix_rules.is_some() {
        return None;
    }
    let open = node.listeners.iter().map(|listener| &listener.uri);
    let open: Vec<String> = open
        .filter(|uri| is_open(uri))
        .map(ToString::to_string)
        .collect();
    if open.is_empty() {
        return None;
    }
    let registers = match node.forwarder.commands.localhop_rib {
        Some(_) => ", register any prefix",
        None => "",
    };
    Some(format!(
        "whoever reaches {} may fetch{registers} and answer for any name: there is no TLS; listen on tls:// with [tls], and say in [[authorize]] who may announce what (docs/tls.md), or on a loopback address",
        open.join(", ")
    ))
}

/// Whether hosts may connect here that have no certificate.
fn is_open(uri: &FaceUri) -> bool {
    let address = uri.endpoint().and_then(|endpoint| endpoint.literal());
    let of_others = address.is_some_and(|address| !address.ip().to_canonical().is_loopback());
    of_others && !uri.needs_certificate()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_forwarder::mgmt::Trust;
    use ndn_forwarder::{PeerPattern, PrefixRule};
    use ndn_io::ListenConfig;

    fn node(listeners: &[&str]) -> NodeConfig {
        let listener = |text: &&str| ListenConfig::new(FaceUri::parse(text).expect("a URI"));
        NodeConfig {
            listeners: listeners.iter().map(listener).collect(),
            ..NodeConfig::default()
        }
    }

    #[test]
    fn open_is_what_others_reach_without_tls() {
        for here in [
            "unix:///x",
            "tcp://127.0.0.1:1",
            "udp://[::1]:1",
            "tls://0.0.0.0:1",
        ] {
            assert_eq!(warning(&node(&[here])), None, "{here}");
        }
        let mut open = node(&["tls://0.0.0.0:1", "tcp://0.0.0.0:2", "udp://[::]:3"]);
        let said = warning(&open).expect("a warning");
        assert!(
            said.contains("tcp4://0.0.0.0:2, udp6://[::]:3 may fetch and"),
            "{said}"
        );
        open.forwarder.commands.localhop_rib = Some(Trust::Any);
        assert!(
            warning(&open)
                .expect("a warning")
                .contains("register any prefix")
        );
        let nobody = PrefixRule {
            peer: PeerPattern::Any,
            prefixes: Vec::new(),
        };
        open.forwarder.prefix_rules = Some([nobody].into());
        assert_eq!(warning(&open), None);
    }
}
