//! What an Interest below `/<root>/blocks` asks for, and what Java is asked then.

use std::fmt::Write;

use bytes::Bytes;
use ndn_packet::{Component, ComponentBuf, Interest, Name, NameRef, PitToken};

use crate::content_key::{self, KeyId, KeyRequest};

/// Longest Interest for a content key that is taken, in bytes: the longest
/// parameters, and a name beside.
const MAX_KEY_INTEREST: usize = content_key::MAX_IDENTIFIER + 1024;

/// A block by pool and id, as they stand in names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// Block pool.
    pub pool: String,
    /// Block id.
    pub block: i64,
}

/// What is asked of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// One sealed segment.
    Sealed {
        /// Generation stamp.
        genstamp: u64,
        /// The key that it is sealed with.
        id: KeyId,
        /// Number of the segment.
        segment: u64,
    },
    /// What the segments of one generation are sealed with.
    ContentKey {
        /// Generation stamp.
        genstamp: u64,
        /// Who asks, and the proof.
        request: KeyRequest,
    },
}

impl Asked {
    /// The generation that is asked for; `None` for whichever is current.
    pub fn genstamp(&self) -> Option<u64> {
        match *self {
            Asked::Metadata => None,
            Asked::Segment { genstamp, .. }
            | Asked::Manifest { genstamp, .. }
            | Asked::Sealed { genstamp, .. }
            | Asked::ContentKey { genstamp, .. } => Some(genstamp),
        }
    }

    /// What Java has to say before this can be answered.
    pub fn question(&self, block: BlockKey) -> Question {
        let about = match self {
            Asked::Metadata | Asked::Segment { .. } | Asked::Manifest { .. } => About::Replica,
            Asked::Sealed {
                id: KeyId::Write(_),
                ..
            } => About::WriteKey,
            Asked::Sealed {
                id: KeyId::Replica { serial, .. },
                ..
            } => About::BlockKey(*serial),
            Asked::ContentKey { request, .. } => About::Token(request.identifier.clone()),
        };
        Question {
            subject: Subject { block, about },
            genstamp: self.genstamp(),
        }
    }
}

/// What Java is asked. Whoever asks for another generation asks something else:
/// what stands in a name may be wrong, and is then refused to its sender alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// What it is about.
    pub subject: Subject,
    /// The generation that is wanted; `None` for whichever is current.
    pub genstamp: Option<u64>,
}

/// What an answer of Java is about, whichever generation there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The block.
    pub block: BlockKey,
    /// What of it.
    pub about: About,
}

/// What of a block Java is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum About {
    /// Where its replica lies.
    Replica,
    /// That, and the key of its write.
    WriteKey,
    /// That, and the secret made with the block key of this serial number.
    BlockKey(u32),
    /// All of that, if whoever has the token of this identifier may read the block.
    Token(Bytes),
}

/// An Interest that waits for an answer of Java, or for its turn to be read.
pub struct Wanted {
    pub interest: Interest,
    pub token: Option<PitToken>,
    pub asked: Asked,
}

/// Reads the components after `prefix`. A source of open replicas takes
/// `<pool>/<block>/v=<gs>/seg=<n>`, `<pool>/<block>/v=<gs>/32=manifest/seg=<n>`
/// and `<pool>/<block>/32=metadata`; one of `guarded` replicas
/// `<pool>/<block>/v=<gs>/32=<key id>/seg=<n>` and
/// `<pool>/<block>/v=<gs>/32=content-key/params-sha256=…`. `None` for all else,
/// such as the streams of a write, which only its client has, and for a number in
/// more bytes than it needs.
pub fn parse(prefix: &Name, guarded: bool, interest: &Interest) -> Option<(BlockKey, Asked)> {
    let name = interest.name();
    let (key, rest) = block(prefix, name)?;
    let at = |n: usize| name.get(prefix.len() + n);
    let asked = match (guarded, rest) {
        (false, 3) if at(2)?.as_keyword()? == b"metadata" => Asked::Metadata,
        (false, 4) => Asked::Segment {
            genstamp: version(at(2)?)?,
            segment: segment(at(3)?)?,
        },
        (false, 5) if at(3)?.as_keyword()? == b"manifest" => Asked::Manifest {
            genstamp: version(at(2)?)?,
            packet: segment(at(4)?)?,
        },
        (true, 5) if at(4)?.is_params_digest() => {
            let keyword = at(3)?.as_keyword()?;
            if keyword != content_key::KEYWORD.as_bytes()
                || interest.wire().len() > MAX_KEY_INTEREST
            {
                return None;
            }
            Asked::ContentKey {
                genstamp: version(at(2)?)?,
                request: KeyRequest::decode(interest.application_parameters()?)?,
            }
        }
        (true, 5) => Asked::Sealed {
            genstamp: version(at(2)?)?,
            id: KeyId::from_bytes(at(3)?.as_keyword()?)?,
            segment: segment(at(4)?)?,
        },
        _ => return None,
    };
    Some((key, asked))
}

/// The number of a version, written as we write it.
fn version(component: Component<'_>) -> Option<u64> {
    let number = component.as_version()?;
    (ComponentBuf::version(number).as_component() == component).then_some(number)
}

/// The number of a segment, written as we write it. It may be written longer, and
/// then stands in another name: content sealed for that by the same number, key
/// and nonce would be told apart by its name alone.
fn segment(component: Component<'_>) -> Option<u64> {
    let number = component.as_segment()?;
    (ComponentBuf::segment(number).as_component() == component).then_some(number)
}

/// The block of a name below `prefix`, and how many components lie below that.
pub fn block(prefix: &Name, name: NameRef<'_>) -> Option<(BlockKey, usize)> {
    let rest = name.len().checked_sub(prefix.len())?;
    let at = |n: usize| name.get(prefix.len() + n);
    let pool = std::str::from_utf8(at(0)?.as_generic()?).ok()?;
    let block = at(1)?.as_generic()?;
    let key = BlockKey {
        pool: pool.to_owned(),
        block: std::str::from_utf8(block).ok()?.parse().ok()?,
    };
    // The name that we would make of the id must be the one that was asked; pools of Hadoop are
    // words, and a request to Java is words with spaces between.
    let ours = key.block.to_string().as_bytes() == block
        && !pool.is_empty()
        && pool.bytes().all(|b| b.is_ascii_graphic());
    ours.then_some((key, rest))
}

/// The text of a request to Java: `<pool> <block> <genstamp>`, -1 for metadata,
/// then ` write` for the write's key, ` key <serial>` for what is made with a
/// block key, or ` token <identifier in hex>`.
pub fn to_text(question: &Question) -> String {
    let Subject { block, about } = &question.subject;
    let BlockKey { pool, block } = block;
    let mut text = match question.genstamp {
        None => format!("{pool} {block} -1"),
        Some(genstamp) => format!("{pool} {block} {genstamp}"),
    };
    match about {
        About::Replica => {}
        About::WriteKey => text.push_str(" write"),
        About::BlockKey(serial) => {
            let _ = write!(text, " key {serial}");
        }
        About::Token(identifier) => {
            text.push_str(" token ");
            for byte in identifier {
                let _ = write!(text, "{byte:02x}");
            }
        }
    }
    text
}

/// The question of a request's text.
pub fn from_text(text: &str) -> Option<Question> {
    let words: Vec<&str> = text.split(' ').collect();
    let [pool, block, genstamp, about @ ..] = &words[..] else {
        return None;
    };
    let genstamp = match *genstamp {
        "-1" => None,
        genstamp => Some(genstamp.parse().ok()?),
    };
    let about = match about {
        [] => About::Replica,
        ["write"] => About::WriteKey,
        ["key", serial] => About::BlockKey(serial.parse().ok()?),
        ["token", hex] => About::Token(bytes_of(hex)?.into()),
        _ => return None,
    };
    let block = BlockKey {
        pool: (*pool).to_owned(),
        block: block.parse().ok()?,
    };
    let subject = Subject { block, about };
    Some(Question { subject, genstamp })
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |b: u8| (b as char).to_digit(16);
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use ndn_packet::tlv::types;

    use super::*;
    use crate::content_key::Asking;

    fn interest(uri: &str) -> Interest {
        let name: Name = uri.parse().unwrap();
        Interest::parse(Interest::builder(&name).nonce(1).build()).unwrap()
    }

    fn parsed_by(guarded: bool, uri: &str) -> Option<(BlockKey, Asked)> {
        let prefix: Name = "/hadoop/blocks".parse().unwrap();
        parse(&prefix, guarded, &interest(uri))
    }

    fn parsed(uri: &str) -> Option<(BlockKey, Asked)> {
        parsed_by(false, uri)
    }

    fn key() -> BlockKey {
        BlockKey {
            pool: "BP-1-10.0.0.1-9".into(),
            block: 1_073_741_825,
        }
    }

    fn replica_id(serial: u32) -> KeyId {
        KeyId::Replica {
            serial,
            gate: *b"the.gate",
            id: *b"12345678",
        }
    }

    fn key_interest(identifier: &[u8]) -> Interest {
        let version: Name = "/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/v=1001"
            .parse()
            .unwrap();
        let asking = Asking::new(&version, identifier, b"password").unwrap();
        let wire = Interest::builder(asking.name())
            .application_parameters(asking.parameters())
            .build();
        Interest::parse(wire).unwrap()
    }

    /// Each number of a name, written in more bytes than it needs.
    #[test]
    fn numbers_are_taken_in_one_form() {
        let prefix: Name = "/hadoop/blocks".parse().unwrap();
        let id = ComponentBuf::keyword(b"12345678");
        let name = |version: &[u8], segment: &[u8]| {
            let block: Name = "/hadoop/blocks/BP-1-10.0.0.1-9/1073741825".parse().unwrap();
            let version = ComponentBuf::new(types::VERSION_COMPONENT, version);
            let segment = ComponentBuf::new(types::SEGMENT_COMPONENT, segment);
            block.append(&version).append(&id).append(&segment)
        };
        let taken = |version: &[u8], segment: &[u8]| {
            let name = name(version, segment);
            let interest = Interest::parse(Interest::builder(&name).nonce(1).build()).unwrap();
            parse(&prefix, true, &interest).is_some()
        };
        let version = 1001u16.to_be_bytes();
        assert!(taken(&version, &[5]));
        for len in [2, 4, 8] {
            assert!(!taken(&version, &5u64.to_be_bytes()[8 - len..]), "{len}");
        }
        for len in [4, 8] {
            assert!(!taken(&1001u64.to_be_bytes()[8 - len..], &[5]), "{len}");
        }
    }

    #[test]
    fn segments_and_metadata() {
        assert_eq!(
            parsed("/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/v=1001/seg=7"),
            Some((
                key(),
                Asked::Segment {
                    genstamp: 1001,
                    segment: 7
                }
            ))
        );
        assert_eq!(
            parsed("/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/32=metadata"),
            Some((key(), Asked::Metadata))
        );
        assert_eq!(
            parsed("/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/v=1001/32=manifest/seg=2"),
            Some((
                key(),
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
    fn sealed_segments() {
        for (uri, id) in [
            ("12345678", KeyId::Write(*b"12345678")),
            ("%00%00%00%09the.gate12345678", replica_id(9)),
        ] {
            let uri = format!("/hadoop/blocks/BP-1-10.0.0.1-9/1073741825/v=1001/32={uri}/seg=3");
            let sealed = Asked::Sealed {
                genstamp: 1001,
                id,
                segment: 3,
            };
            assert_eq!(parsed_by(true, &uri), Some((key(), sealed)));
            assert_eq!(parsed_by(false, &uri), None);
        }
    }

    #[test]
    fn content_keys() {
        let prefix: Name = "/hadoop/blocks".parse().unwrap();
        let (block, asked) = parse(&prefix, true, &key_interest(b"who")).unwrap();
        assert_eq!(block, key());
        assert_eq!(asked.genstamp(), Some(1001));
        let about = About::Token(Bytes::from_static(b"who"));
        assert_eq!(asked.question(block).subject.about, about);
        assert_eq!(parse(&prefix, false, &key_interest(b"who")), None);
        let longest = key_interest(&[7; content_key::MAX_IDENTIFIER]);
        assert!(parse(&prefix, true, &longest).is_some());

        // The right name with other parameters, or far too long.
        let name = key_interest(b"who").name_owned();
        for parameters in [Bytes::new(), vec![1; 8000].into()] {
            let wire = Interest::builder(&name)
                .application_parameters(parameters)
                .build();
            assert_eq!(parse(&prefix, true, &Interest::parse(wire).unwrap()), None);
        }
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
            "/hadoop/blocks/p%20q/1/v=1/seg=0",
            "/hadoop/blocks/p/1/v=1/32=stream/abcdefgh/seg=0",
            "/hadoop/blocks/p/1/v=1/32=abcdefg/seg=0",
            "/hadoop/blocks/p/1/v=1/32=abcdefgh/32=stream/abcdefgh/seg=0",
            "/hadoop/blocks/p/1/32=metadata/v=3/seg=0",
            "/hadoop/blocks/p/1/32=other",
            "/hadoop",
        ] {
            assert_eq!(parsed_by(false, uri), None, "{uri}");
            assert_eq!(parsed_by(true, uri), None, "{uri}");
        }
    }

    /// Whoever asks by a plain name where blocks are guarded.
    #[test]
    fn plain_names_of_guarded_blocks_are_not_ours() {
        for uri in [
            "/hadoop/blocks/p/1/v=1/seg=0",
            "/hadoop/blocks/p/1/32=metadata",
        ] {
            assert!(parsed_by(false, uri).is_some(), "{uri}");
            assert_eq!(parsed_by(true, uri), None, "{uri}");
        }
    }

    #[test]
    fn other_generations_and_other_things_are_other_questions() {
        let sealed = |genstamp, id| Asked::Sealed {
            genstamp,
            id,
            segment: 1,
        };
        let (one, two) = (KeyId::Write([1; 8]), KeyId::Write([2; 8]));
        let ask = |genstamp, id| sealed(genstamp, id).question(key());
        assert_eq!(ask(44, one), ask(44, two), "one answer for both");
        assert_ne!(ask(44, one), ask(45, one));
        assert_eq!(ask(44, one).subject, ask(45, one).subject);
        assert_eq!(Asked::Metadata.question(key()).genstamp, None);
    }

    #[test]
    fn request_text() {
        let segment = Asked::Segment {
            genstamp: 44,
            segment: 1,
        };
        let sealed = |id| Asked::Sealed {
            genstamp: 44,
            id,
            segment: 1,
        };
        let prefix: Name = "/hadoop/blocks".parse().unwrap();
        let (_, content_key) = parse(&prefix, true, &key_interest(b"\x00\xffwho")).unwrap();
        let start = "BP-1-10.0.0.1-9 1073741825";
        for (asked, text) in [
            (Asked::Metadata, "-1"),
            (segment, "44"),
            (sealed(KeyId::Write([1; 8])), "44 write"),
            (sealed(replica_id(4_000_000_000)), "44 key 4000000000"),
            (content_key, "1001 token 00ff77686f"),
        ] {
            let question = asked.question(key());
            let said = to_text(&question);
            assert_eq!(said, format!("{start} {text}"));
            assert_eq!(from_text(&said), Some(question));
        }
        for text in [
            "x",
            "p y 1",
            "p 1 x",
            "p 1 -2",
            "p 1 1 other",
            "p 1 1 key x",
            "p 1 1 token 0",
            "p 1 1 token zz",
        ] {
            assert_eq!(from_text(text), None, "{text}");
        }
    }
}
