//! Which prefixes a face may announce: register, or answer for where no route leads. By the names that its other end has
//! proven to have; who proves them, and how, is the driver's business.

use ndn_packet::Name;
use std::fmt;
use std::str::FromStr;

/// What those with a name may announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixRule {
    /// Whom it is about.
    pub peer: PeerPattern,
    /// Names under any of these.
    pub prefixes: Vec<Name>,
}

/// Whom a rule is about: one name (`host1.rack1`), all in a domain (`*.rack1`, one label for the star), or whoever has
/// proven any name (`*`). Letters are of either case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerPattern {
    /// Whoever has proven any name.
    Any,
    /// This name.
    Name(String),
    /// A name with one label more than this one.
    In(String),
}

/// Why a text is no [`PeerPattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerPatternError;

impl fmt::Display for PeerPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no host name, `*.` with a domain behind it, or `*`")
    }
}

impl std::error::Error for PeerPatternError {}

impl FromStr for PeerPattern {
    type Err = PeerPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "*" {
            return Ok(PeerPattern::Any);
        }
        let (of_domain, name) = match text.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, text),
        };
        let is_label = |label: &str| {
            let mut bytes = label.bytes();
            !label.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        if !name.split('.').all(is_label) {
            return Err(PeerPatternError);
        }
        let name = name.to_ascii_lowercase();
        Ok(match of_domain {
            true => PeerPattern::In(name),
            false => PeerPattern::Name(name),
        })
    }
}

impl fmt::Display for PeerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerPattern::Any => f.write_str("*"),
            PeerPattern::Name(name) => f.write_str(name),
            PeerPattern::In(domain) => write!(f, "*.{domain}"),
        }
    }
}

impl PeerPattern {
    /// Whether a name that was proven is meant.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            PeerPattern::Any => true,
            PeerPattern::Name(own) => own.eq_ignore_ascii_case(name),
            PeerPattern::In(domain) => name
                .split_once('.')
                .is_some_and(|(_, rest)| domain.eq_ignore_ascii_case(rest)),
        }
    }
}

/// What one face may announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Announces {
    /// Anything.
    All,
    /// Names under any of these.
    Under(Box<[Name]>),
}

impl Announces {
    /// By these rules, where there are any, of a face whose other end has these names. Who is on this host is not asked:
    /// whoever reaches its sockets may do more than that.
    pub(crate) fn new(rules: Option<&[PrefixRule]>, is_local: bool, peer_names: &[String]) -> Self {
        let Some(rules) = rules.filter(|_| !is_local) else {
            return Announces::All;
        };
        let is_meant = |rule: &&PrefixRule| peer_names.iter().any(|name| rule.peer.matches(name));
        let prefixes = rules
            .iter()
            .filter(is_meant)
            .flat_map(|rule| &rule.prefixes);
        Announces::Under(prefixes.cloned().collect())
    }

    /// Whether a name, in wire format without its outer type and length, is among it.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        match self {
            Announces::All => true,
            // Components tell their own lengths: one name's bytes begin with another's only where it is a prefix.
            Announces::Under(prefixes) => prefixes.iter().any(|p| name.starts_with(p.value())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> PeerPattern {
        text.parse().unwrap()
    }

    #[test]
    fn names_domains_and_all() {
        for (text, yes, no) in [
            (
                "Host1.rack1",
                &["host1.RACK1"][..],
                &["host1", "host1.rack1.x", "x.host1.rack1"][..],
            ),
            (
                "*.rack1",
                &["host1.rack1", "H.Rack1"],
                &["rack1", "a.b.rack1", ".rack2"],
            ),
            ("*", &["anything"], &[]),
            ("router", &["router"], &["router.x"]),
        ] {
            let pattern = pattern(text);
            assert!(yes.iter().all(|name| pattern.matches(name)), "{text}");
            assert!(!no.iter().any(|name| pattern.matches(name)), "{text}");
        }
        for text in ["", "*.", "**", "a*", "*.*.x", "a..b", ".a", "a b", "ä"] {
            assert!(text.parse::<PeerPattern>().is_err(), "{text}");
        }
    }

    fn remote(rules: Option<&[PrefixRule]>, names: &[&str]) -> Announces {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Announces::new(rules, false, &names)
    }

    fn has(announces: &Announces, name: &str) -> bool {
        announces.has(name.parse::<Name>().unwrap().value())
    }

    #[test]
    fn rules_add_up_and_who_proves_nothing_has_none() {
        let rule = |peer, prefixes: &[&str]| PrefixRule {
            peer: pattern(peer),
            prefixes: prefixes.iter().map(|p| p.parse().unwrap()).collect(),
        };
        let rules = [
            rule("host1.rack1", &["/a", "/b/c"]),
            rule("*.rack1", &["/all"]),
        ];
        let of = |names: &[&str]| remote(Some(&rules), names);
        let host = of(&["host1.rack1"]);
        for (name, may) in [
            ("/a", true),
            ("/a/x", true),
            ("/ab", false),
            ("/b", false),
            ("/b/c/d", true),
            ("/all/1", true),
            ("/", false),
        ] {
            assert_eq!(has(&host, name), may, "{name}");
        }
        let other = of(&["host2.rack1"]);
        assert!(has(&other, "/all") && !has(&other, "/a"));
        assert!(!has(&of(&[]), "/all"));
        assert_eq!(remote(None, &[]), Announces::All);
        assert_eq!(Announces::new(Some(&rules), true, &[]), Announces::All);
    }

    proptest! {
        /// Bytes begin with a prefix's bytes where, and only where, its components are the first ones.
        #[test]
        fn prefixes_by_bytes_are_prefixes_by_components(
            a in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..4),
            b in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..4),
        ) {
            let name = |parts: &[Vec<u8>]| -> Name {
                parts.iter().map(|part| ndn_packet::Component::generic(part)).collect()
            };
            let (prefix, under) = (name(&a), name(&b));
            let announces = Announces::Under([prefix.clone()].into());
            prop_assert_eq!(announces.has(under.value()), prefix.is_prefix_of(&under));
        }
    }
}
