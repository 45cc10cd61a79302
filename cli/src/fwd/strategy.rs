//! Strategies by the names that people and management commands give them.

use ndn_forwarder::StrategyKind;
use ndn_packet::{ComponentBuf, Name};

/// What can be written, for error messages.
pub const HINT: &str = "write best-route, multicast or self-learning";

/// The strategy of this short or full name.
///
/// # Errors
/// There is none.
pub fn parse(text: &str) -> Result<StrategyKind, String> {
    StrategyKind::from_label(text).ok_or_else(|| format!("there is no strategy `{text}`"))
}

/// The full name that a command needs: what begins with `/` is one, anything else the last
/// component of one. The forwarder that is asked may know strategies that are not known here.
///
/// # Errors
/// It is no name.
pub fn full_name(text: &str) -> Result<Name, String> {
    if text.starts_with('/') {
        return text.parse::<Name>().map_err(|e| e.to_string());
    }
    let parts = ["localhost", "nfd", "strategy", text];
    Ok(Name::from_components(parts.map(ComponentBuf::generic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_full_names() {
        assert_eq!(parse("multicast"), Ok(StrategyKind::Multicast));
        assert_eq!(
            parse("/localhost/nfd/strategy/best-route"),
            Ok(StrategyKind::BestRoute)
        );
        assert!(parse("fastest").is_err());
        assert_eq!(
            full_name("asf").map(|n| n.to_string()),
            Ok(String::from("/localhost/nfd/strategy/asf"))
        );
        assert!(full_name("/a//%").is_err());
    }
}
