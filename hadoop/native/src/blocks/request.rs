//! What an Interest below `/<root>/blocks` asks for.

use ndn_packet::{Interest, Name, NameRef, PitToken};

/// A block by pool and id, as they stand in names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// Block pool.
    pub pool: String,
    /// Block id.
    pub block: i64,
}

/// What is asked of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Its metadata packet (RDR), whichever version is current.
    Metadata,
    /// One segment of one generation.
    Segment {
        /// Generation stamp.
        genstamp: u64,
        /// Number of the segment.
        segment: u64,
    },
    /// One packet of the digests of a generation's segments.
    Manifest {
        /// Generation stamp.
        genstamp: u64,
        /// Number of the packet.
        packet: u64,
    },
}

impl Asked {
    /// The generation that is asked for; `None` for whichever is current.
    pub fn genstamp(&self) -> Option<u64> {
        match *self {
            Asked::Metadata => None,
            Asked::Segment { genstamp, .. } | Asked::Manifest { genstamp, .. } => Some(genstamp),
        }
    }
}

/// An Interest that waits for an answer of Java, or for its turn to be read.
pub struct Wanted {
    pub interest: Interest,
    pub token: Option<PitToken>,
    pub asked: Asked,
}

/// Reads the components after `prefix`: `<pool>/<block>/v=<gs>/seg=<n>`,
/// `<pool>/<block>/v=<gs>/32=manifest/seg=<n>` or `<pool>/<block>/32=metadata`. `None` for all else, such as the streams of a
/// write, which only its client has.
pub fn parse(prefix: &Name, name: NameRef<'_>) -> Option<(BlockKey, Asked)> {
    let rest = name.len().checked_sub(prefix.len())?;
    let at = |n: usize| name.get(prefix.len() + n);
    let pool = at(0)?.as_generic()?;
    let block = at(1)?.as_generic()?;
    let key = BlockKey {
        pool: std::str::from_utf8(pool).ok()?.to_owned(),
        block: std::str::from_utf8(block).ok()?.parse().ok()?,
    };
    // The name that we would make of the id must be the one that was asked.
    if key.block.to_string().as_bytes() != block || key.pool.is_empty() {
        return None;
    }
    match rest {
        3 if at(2)?.as_keyword()? == b"metadata" => Some((key, Asked::Metadata)),
        4 => {
            let (genstamp, segment) = (at(2)?.as_version()?, at(3)?.as_segment()?);
            Some((key, Asked::Segment { genstamp, segment }))
        }
        5 if at(3)?.as_keyword()? == b"manifest" => {
            let (genstamp, packet) = (at(2)?.as_version()?, at(4)?.as_segment()?);
            Some((key, Asked::Manifest { genstamp, packet }))
        }
        _ => None,
    }
}

/// The text of a request to Java: `<pool> <block> <genstamp>`, -1 for metadata.
pub fn to_text(key: &BlockKey, asked: &Asked) -> String {
    match asked.genstamp() {
        None => format!("{} {} -1", key.pool, key.block),
        Some(genstamp) => format!("{} {} {genstamp}", key.pool, key.block),
    }
}

/// The block of a request's text.
pub fn from_text(text: &str) -> Option<BlockKey> {
    let mut words = text.rsplitn(3, ' ').skip(1);
    let block = words.next()?.parse().ok()?;
    Some(BlockKey {
        pool: words.next()?.to_owned(),
        block,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(uri: &str) -> Option<(BlockKey, Asked)> {
        let prefix: Name = "/hadoop/blocks".parse().unwrap();
        let name: Name = uri.parse().unwrap();
        parse(&prefix, name.as_ref())
    }

    #[test]
    fn segments_and_metadata() {
        let key = BlockKey {
            pool: "BP-1-10.0.0.1-9".into(),
            block: 1_073_741_825,
        };
        assert_eq!(
            parsed("/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/v=1001/seg=7"),
            Some((
                key.clone(),
                Asked::Segment {
                    genstamp: 1001,
                    segment: 7
                }
            ))
        );
        assert_eq!(
            parsed("/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/32=metadata"),
            Some((key.clone(), Asked::Metadata))
        );
        assert_eq!(
            parsed("/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/v=1001/32=manifest/seg=2"),
            Some((
                key,
                Asked::Manifest {
                    genstamp: 1001,
                    packet: 2
                }
            ))
        );
        let (key, _) = parsed("/hadoop/blocks/p/-92233720368547/32=metadata").unwrap();
        assert_eq!(key.block, -92_233_720_368_547);
    }

    #[test]
    fn all_else_is_not_ours() {
        for uri in [
            "/hadoop/blocks",
            "/hadoop/blocks/p",
            "/hadoop/blocks/p/1",
            "/hadoop/blocks/p/1/v=1",
            "/hadoop/blocks/p/1/v=1/v=2",
            "/hadoop/blocks/p/x/v=1/seg=0",
            "/hadoop/blocks/p/01/v=1/seg=0",
            "/hadoop/blocks/p/+1/v=1/seg=0",
            "/hadoop/blocks/p/1/v=1/32=stream/abcdefgh/seg=0",
            "/hadoop/blocks/p/1/32=metadata/v=3/seg=0",
            "/hadoop/blocks/p/1/32=other",
            "/hadoop",
        ] {
            assert_eq!(parsed(uri), None, "{uri}");
        }
    }

    #[test]
    fn request_text() {
        let key = BlockKey {
            pool: "BP with space".into(),
            block: -5,
        };
        let text = to_text(&key, &Asked::Metadata);
        assert_eq!(text, "BP with space -5 -1");
        assert_eq!(from_text(&text), Some(key.clone()));
        let text = to_text(
            &key,
            &Asked::Segment {
                genstamp: 44,
                segment: 1,
            },
        );
        assert_eq!(text, "BP with space -5 44");
        assert_eq!(from_text(&text), Some(key));
        assert_eq!(from_text("x"), None);
        assert_eq!(from_text("p y 1"), None);
    }
}
