//! Realtime Data Retrieval: the metadata packet that tells the newest version of an object.
//!
//! Source: named-data.net, ndn-tlv wiki, "RDR" revision 5. The Interest is `<object>/32=metadata` with CanBePrefix and
//! MustBeFresh, the Data `<object>/32=metadata/v=<time>/seg=0`. Its content is a sequence of TLV elements, first the Name
//! of the newest version. RDR leaves the others to applications; these are written here:
//!
//! | type | element | value |
//! |---|---|---|
//! | 0x1a | FinalBlockId | last segment, a segment component |
//! | 0xf500 | SegmentSize | bytes of content in each segment but the last |
//! | 0xf502 | Size | bytes of the object |
//! | 0xf504 | Mode | `st_mode` of a file |
//! | 0xf50c | Mtime | nanoseconds since the Unix epoch |
//! | 0xf580 | ChecksumType | 0 none, 1 CRC-32, 2 CRC-32C, as Hadoop's DataChecksum counts |
//! | 0xf582 | BytesPerChecksum | bytes of the object under each checksum |
//! | 0xf584 | ManifestDigest | SHA-256 of the object's manifest: the SignatureValues of all its segments, one after the other |
//!
//! The numbers below 0xf580 are those of ndn6-file-server, so its clients (NDNts, NDN-DPDK) understand them. The last
//! three are Trunkline's. All are even, thus ignored by readers that know them not; unknown even ones are ignored here.

use crate::ExchangeConfig;
use crate::naming::final_segment;
use bytes::{Bytes, BytesMut};
use ndn_packet::tlv::{self, Reader, types};
use ndn_packet::{ComponentBuf, Data, DecodeError, Name, NameRef, Signer, content_type};
use std::time::Duration;

const SEGMENT_SIZE: u32 = 0xf500;
const SIZE: u32 = 0xf502;
const MODE: u32 = 0xf504;
const MTIME: u32 = 0xf50c;
const CHECKSUM_TYPE: u32 = 0xf580;
const BYTES_PER_CHECKSUM: u32 = 0xf582;
const MANIFEST_DIGEST: u32 = 0xf584;

/// Why a Data tells no metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Its producer says that there is no such object (ContentType Nack).
    #[error("{0}: its producer has no such object")]
    Refused(Name),
    /// Its content is no metadata.
    #[error("{name}: not a metadata packet: {source}")]
    Malformed {
        /// Name of the Data.
        name: Name,
        /// What is wrong with it.
        source: DecodeError,
    },
}

/// What a metadata packet tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the newest version, without segment.
    pub name: Name,
    /// Its last segment.
    pub last: Option<u64>,
    /// Bytes of content in each segment but the last.
    pub segment_bytes: Option<u64>,
    /// Bytes of the object.
    pub size: Option<u64>,
    /// `st_mode` of a file.
    pub mode: Option<u64>,
    /// Time of last change in nanoseconds since the Unix epoch.
    pub mtime_ns: Option<u64>,
    /// Kind of checksum in the segments: 0 none, 1 CRC-32, 2 CRC-32C.
    pub checksum_type: Option<u64>,
    /// Bytes of the object under each checksum.
    pub bytes_per_checksum: Option<u64>,
    /// SHA-256 over the SignatureValues of all segments: whoever trusts this packet's signature can verify each of them.
    pub manifest_digest: Option<[u8; 32]>,
}

impl Metadata {
    /// Metadata that tells the version only.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            last: None,
            segment_bytes: None,
            size: None,
            mode: None,
            mtime_ns: None,
            checksum_type: None,
            bytes_per_checksum: None,
            manifest_digest: None,
        }
    }

    /// The content of the metadata packet.
    pub fn encode(&self) -> Bytes {
        let mut content = BytesMut::with_capacity(self.name.wire_len() + 64);
        self.name.encode(&mut content);
        if let Some(last) = self.last {
            let typ = u32::from(types::SEGMENT_COMPONENT);
            tlv::write_header(
                &mut content,
                types::FINAL_BLOCK_ID,
                tlv::nonneg_tlv_len(typ, last),
            );
            tlv::write_nonneg_tlv(&mut content, typ, last);
        }
        for (typ, value) in [
            (SEGMENT_SIZE, self.segment_bytes),
            (SIZE, self.size),
            (MODE, self.mode),
            (MTIME, self.mtime_ns),
            (CHECKSUM_TYPE, self.checksum_type),
            (BYTES_PER_CHECKSUM, self.bytes_per_checksum),
        ] {
            if let Some(value) = value {
                tlv::write_nonneg_tlv(&mut content, typ, value);
            }
        }
        if let Some(digest) = &self.manifest_digest {
            tlv::write_tlv(&mut content, MANIFEST_DIGEST, digest);
        }
        content.freeze()
    }

    /// Reads a metadata packet.
    ///
    /// # Errors
    /// [`MetadataError`] when its producer refuses, or its content cannot be read.
    pub fn from_data(data: &Data) -> Result<Self, MetadataError> {
        if data.content_type() == content_type::NACK {
            return Err(MetadataError::Refused(data.name().to_name()));
        }
        Self::decode(data.content_slice()).map_err(|source| MetadataError::Malformed {
            name: data.name().to_name(),
            source,
        })
    }

    /// Reads the content of a metadata packet.
    ///
    /// # Errors
    /// [`DecodeError`] when it does not begin with a Name, an element is malformed, or an unknown one is critical.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(content);
        let name = reader.next()?.ok_or(DecodeError::Missing("Name"))?;
        if name.typ != types::NAME {
            return Err(DecodeError::UnexpectedType {
                expected: types::NAME,
                found: name.typ,
            });
        }
        let mut metadata = Self::new(NameRef::from_value(name.value)?.to_name());
        while let Some(element) = reader.next()? {
            let field = match element.typ {
                types::FINAL_BLOCK_ID => {
                    metadata.last = final_segment(NameRef::from_value(element.value)?.get(0));
                    continue;
                }
                SEGMENT_SIZE => &mut metadata.segment_bytes,
                SIZE => &mut metadata.size,
                MODE => &mut metadata.mode,
                MTIME => &mut metadata.mtime_ns,
                CHECKSUM_TYPE => &mut metadata.checksum_type,
                BYTES_PER_CHECKSUM => &mut metadata.bytes_per_checksum,
                MANIFEST_DIGEST => {
                    let digest = element
                        .value
                        .try_into()
                        .map_err(|_| DecodeError::BadLength {
                            typ: MANIFEST_DIGEST,
                            len: element.value.len(),
                        })?;
                    metadata.manifest_digest = Some(digest);
                    continue;
                }
                typ if tlv::is_critical(typ) => return Err(DecodeError::UnknownCritical(typ)),
                _ => continue,
            };
            *field = Some(element.nonneg()?);
        }
        Ok(metadata)
    }

    /// The signed metadata packet of `object` (no version): `<object>/32=metadata/v=<version>/seg=0`. `version` must
    /// grow from packet to packet, say microseconds since the Unix epoch; `freshness` must be at least 1 ms by RDR,
    /// and is how long caches may answer with this packet.
    pub fn packet(
        &self,
        object: &Name,
        version: u64,
        freshness: Duration,
        signer: &(impl Signer + ?Sized),
    ) -> Bytes {
        let name = discovery_name(object)
            .append_version(version)
            .append_segment(0);
        Data::builder(&name)
            .freshness(freshness.max(Duration::from_millis(1)))
            .final_block_id(ComponentBuf::segment(0))
            .content(&self.encode())
            .sign(signer)
    }
}

/// `<object>/32=metadata`.
pub fn discovery_name(object: &Name) -> Name {
    object.append_keyword("metadata")
}

/// Name of the manifest of a version: `<versioned>/32=manifest`, a stream of the SignatureValues of all segments.
pub fn manifest_name(versioned: &Name) -> Name {
    versioned.append_keyword("manifest")
}

/// Whether this Interest name asks for the metadata of `object`.
pub fn asks_metadata(object: &Name, interest: NameRef<'_>) -> bool {
    interest.len() == object.len() + 1
        && object.as_ref().is_prefix_of(interest)
        && interest.last().and_then(|c| c.as_keyword()) == Some(b"metadata")
}

/// The exchange that asks for the metadata of `object`; read what it gets with [`Metadata::from_data`].
pub fn discovery(object: &Name) -> ExchangeConfig {
    ExchangeConfig {
        can_be_prefix: true,
        must_be_fresh: true,
        ..ExchangeConfig::new(discovery_name(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::SigningKey;

    #[test]
    fn goes_round() {
        let object: Name = "/hadoop/blocks/BP-1/7".parse().expect("a name");
        let metadata = Metadata {
            last: Some(2080),
            segment_bytes: Some(64512),
            size: Some(134_217_728),
            checksum_type: Some(2),
            bytes_per_checksum: Some(512),
            manifest_digest: Some([7; 32]),
            ..Metadata::new(object.append_version(1001))
        };
        let wire = metadata.packet(&object, 5, Duration::ZERO, &SigningKey::DigestSha256);
        let data = Data::parse(wire).expect("well formed");
        assert!(discovery_name(&object).as_ref().is_prefix_of(data.name()));
        assert_eq!(data.freshness(), Some(Duration::from_millis(1)));
        assert_eq!(Metadata::from_data(&data), Ok(metadata));
        let refusal = Data::builder(&object)
            .content_type(content_type::NACK)
            .sign(&SigningKey::DigestSha256);
        let refusal = Data::parse(refusal).expect("well formed");
        assert_eq!(
            Metadata::from_data(&refusal),
            Err(MetadataError::Refused(object.clone()))
        );
        assert!(asks_metadata(&object, discovery_name(&object).as_ref()));
        assert!(!asks_metadata(&object, data.name()));
    }

    #[test]
    fn unknown_elements_follow_the_critical_bit() {
        let mut content =
            BytesMut::from(&Metadata::new("/a/v=1".parse().expect("a name")).encode()[..]);
        tlv::write_tlv(&mut content, 0xf5f0, b"?");
        assert!(Metadata::decode(&content).is_ok());
        tlv::write_tlv(&mut content, 0xf5f1, b"?");
        assert_eq!(
            Metadata::decode(&content),
            Err(DecodeError::UnknownCritical(0xf5f1))
        );
        assert!(Metadata::decode(b"").is_err());
        assert!(Metadata::decode(&[0x1a, 0]).is_err());
    }
}
