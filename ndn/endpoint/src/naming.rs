//! How a name asks for a segment of a stream: `<prefix>/seg=<n>`, compared in place, nothing copied.

use ndn_packet::{Component, Name, NameRef};

/// What the name of an Interest or Data means to the stream under a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentName<'a> {
    /// `<prefix>/seg=<n>`.
    Segment(u64),
    /// `<prefix>/seg=<n>/sha256digest=…`: that segment, but only the packet of this digest.
    Exact(u64, &'a [u8]),
    /// The prefix itself or a shorter name that leads to it: answered where the Interest has CanBePrefix.
    Above,
    /// A name elsewhere.
    Foreign,
}

impl<'a> SegmentName<'a> {
    /// Reads `name` against the stream's `prefix` (version included, segment not).
    #[inline]
    pub fn of(prefix: &Name, name: NameRef<'a>) -> Self {
        let Some(rest) = name.value().strip_prefix(prefix.value()) else {
            return if name.is_prefix_of(prefix) {
                Self::Above
            } else {
                Self::Foreign
            };
        };
        // A TLV prefix that is whole components ends where a component ends.
        let Ok(rest) = NameRef::from_value(rest) else {
            return Self::Foreign;
        };
        let mut components = rest.components();
        match (components.next(), components.next(), components.next()) {
            (None, ..) => Self::Above,
            (Some(segment), None, _) => segment.as_segment().map_or(Self::Foreign, Self::Segment),
            (Some(segment), Some(digest), None) if digest.is_implicit_digest() => segment
                .as_segment()
                .map_or(Self::Foreign, |n| Self::Exact(n, digest.value)),
            _ => Self::Foreign,
        }
    }

    /// The segment number where the name is `<prefix>/seg=<n>`.
    #[inline]
    pub fn segment(prefix: &Name, name: NameRef<'_>) -> Option<u64> {
        match SegmentName::of(prefix, name) {
            SegmentName::Segment(n) => Some(n),
            _ => None,
        }
    }
}

/// The segment number in a FinalBlockId.
#[inline]
pub(crate) fn final_segment(component: Option<Component<'_>>) -> Option<u64> {
    component.and_then(|c| c.as_segment())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().expect("a name")
    }

    #[test]
    fn names_are_told_apart() {
        let prefix = name("/a/b/v=1");
        let of = |n: &Name| match SegmentName::of(&prefix, n.as_ref()) {
            SegmentName::Segment(n) => format!("seg {n}"),
            SegmentName::Exact(n, d) => format!("exact {n} {}", d.len()),
            SegmentName::Above => "above".into(),
            SegmentName::Foreign => "foreign".into(),
        };
        assert_eq!(of(&name("/a/b/v=1/seg=7")), "seg 7");
        assert_eq!(of(&name("/a/b/v=1/seg=70000")), "seg 70000");
        assert_eq!(of(&name("/a/b/v=1")), "above");
        assert_eq!(of(&name("/a")), "above");
        assert_eq!(of(&name("/")), "above");
        assert_eq!(of(&name("/a/b/v=2/seg=7")), "foreign");
        assert_eq!(of(&name("/a/b/v=1/seg=7/x")), "foreign");
        assert_eq!(of(&name("/a/b/v=1/x")), "foreign");
        assert_eq!(
            of(&name("/a/b/v=1/seg=7").append(ndn_packet::ComponentBuf::implicit_digest(&[9; 32]))),
            "exact 7 32"
        );
    }
}
