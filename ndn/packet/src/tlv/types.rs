//! Type numbers of NDN Packet Format 0.3.

/// Interest packet.
pub const INTEREST: u32 = 0x05;
/// Data packet.
pub const DATA: u32 = 0x06;
/// Name.
pub const NAME: u32 = 0x07;
/// Name component: SHA-256 digest of the whole Data packet.
pub const IMPLICIT_SHA256_DIGEST: u16 = 0x01;
/// Name component: SHA-256 digest of an Interest's parameters.
pub const PARAMETERS_SHA256_DIGEST: u16 = 0x02;
/// Name component: plain bytes.
pub const GENERIC_COMPONENT: u16 = 0x08;
/// Name component: keyword, `32=` in a URI.
pub const KEYWORD_COMPONENT: u16 = 0x20;
/// Name component: segment number, `seg=`.
pub const SEGMENT_COMPONENT: u16 = 0x32;
/// Name component: byte offset, `off=`.
pub const BYTE_OFFSET_COMPONENT: u16 = 0x34;
/// Name component: version, `v=`.
pub const VERSION_COMPONENT: u16 = 0x36;
/// Name component: timestamp in microseconds since the Unix epoch, `t=`.
pub const TIMESTAMP_COMPONENT: u16 = 0x38;
/// Name component: sequence number, `seq=`.
pub const SEQUENCE_COMPONENT: u16 = 0x3a;
/// Interest: the Data name may be longer.
pub const CAN_BE_PREFIX: u32 = 0x21;
/// Interest: no stale Data.
pub const MUST_BE_FRESH: u32 = 0x12;
/// Interest: names of delegations.
pub const FORWARDING_HINT: u32 = 0x1e;
/// Interest: four random bytes.
pub const NONCE: u32 = 0x0a;
/// Interest: lifetime in milliseconds.
pub const INTEREST_LIFETIME: u32 = 0x0c;
/// Interest: hops left.
pub const HOP_LIMIT: u32 = 0x22;
/// Interest: parameters of the application.
pub const APPLICATION_PARAMETERS: u32 = 0x24;
/// Interest: signature info.
pub const INTEREST_SIGNATURE_INFO: u32 = 0x2c;
/// Interest: signature value.
pub const INTEREST_SIGNATURE_VALUE: u32 = 0x2e;
/// Data: meta info.
pub const META_INFO: u32 = 0x14;
/// Data: content.
pub const CONTENT: u32 = 0x15;
/// Data: signature info.
pub const SIGNATURE_INFO: u32 = 0x16;
/// Data: signature value.
pub const SIGNATURE_VALUE: u32 = 0x17;
/// MetaInfo: content type.
pub const CONTENT_TYPE: u32 = 0x18;
/// MetaInfo: freshness period in milliseconds.
pub const FRESHNESS_PERIOD: u32 = 0x19;
/// MetaInfo: last component of the last segment's name.
pub const FINAL_BLOCK_ID: u32 = 0x1a;
/// SignatureInfo: signature type.
pub const SIGNATURE_TYPE: u32 = 0x1b;
/// SignatureInfo: where the key is.
pub const KEY_LOCATOR: u32 = 0x1c;
/// KeyLocator: digest of the key.
pub const KEY_DIGEST: u32 = 0x1d;
/// InterestSignatureInfo: nonce.
pub const SIGNATURE_NONCE: u32 = 0x26;
/// InterestSignatureInfo: time in milliseconds since the Unix epoch.
pub const SIGNATURE_TIME: u32 = 0x28;
/// InterestSignatureInfo: sequence number.
pub const SIGNATURE_SEQ_NUM: u32 = 0x2a;
/// SignatureInfo of a certificate: validity period.
pub const VALIDITY_PERIOD: u32 = 0xfd;
/// ValidityPeriod: first moment, `YYYYMMDDThhmmss`.
pub const NOT_BEFORE: u32 = 0xfe;
/// ValidityPeriod: last moment, `YYYYMMDDThhmmss`.
pub const NOT_AFTER: u32 = 0xff;
/// NDNLPv2 packet.
pub const LP_PACKET: u32 = 0x64;
/// SignatureInfo of DigestSha256: a key's signature for a batch of packets (not NDN's own; ignored by who does not know it).
pub const BATCH_SIGNATURE: u32 = 0xf5a0;
/// BatchSignature: the packet's place in the batch.
pub const BATCH_PLACE: u32 = 0xf5a2;
/// BatchSignature: digests on the way from the packet to the root.
pub const BATCH_PATH: u32 = 0xf5a4;
