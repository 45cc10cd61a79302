//! SignatureInfo: how a packet is signed and where its key is.

use crate::tlv::{self, Order, Reader, types};
use crate::{DecodeError, Name, NameRef};
use bytes::{BufMut, Bytes};
use std::fmt;

/// SignatureType numbers.
pub mod signature_type {
    /// SHA-256 of the signed portion: integrity only.
    pub const DIGEST_SHA256: u64 = 0;
    /// RSA PKCS#1 v1.5 over SHA-256 (recognized, not verified by this crate).
    pub const SHA256_WITH_RSA: u64 = 1;
    /// ECDSA over SHA-256, DER-encoded.
    pub const SHA256_WITH_ECDSA: u64 = 3;
    /// HMAC with SHA-256.
    pub const HMAC_WITH_SHA256: u64 = 4;
    /// Ed25519.
    pub const ED25519: u64 = 5;
    /// No signature at all.
    pub const NULL: u64 = 200;
}

/// Where a packet's key is, borrowed from the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLocatorRef<'a> {
    /// Name of a certificate or key.
    Name(NameRef<'a>),
    /// Digest of a key.
    KeyDigest(&'a [u8]),
}

/// Where a packet's key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocator {
    /// Name of a certificate or key.
    Name(Name),
    /// Digest of a key.
    KeyDigest(Bytes),
}

impl KeyLocator {
    /// The borrowed form.
    pub fn as_ref(&self) -> KeyLocatorRef<'_> {
        match self {
            KeyLocator::Name(name) => KeyLocatorRef::Name(name.as_ref()),
            KeyLocator::KeyDigest(digest) => KeyLocatorRef::KeyDigest(digest),
        }
    }
}

/// The name of the key, or `sha256:` and its digest.
impl fmt::Display for KeyLocatorRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyLocatorRef::Name(name) => name.fmt(f),
            KeyLocatorRef::KeyDigest(digest) => write!(f, "sha256:{}", hex::encode(digest)),
        }
    }
}

impl fmt::Display for KeyLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl KeyLocatorRef<'_> {
    /// The owned form.
    #[allow(
        clippy::wrong_self_convention,
        reason = "as the standard library's borrowed forms have it"
    )]
    pub fn to_owned(&self) -> KeyLocator {
        match self {
            KeyLocatorRef::Name(name) => KeyLocator::Name(name.to_name()),
            KeyLocatorRef::KeyDigest(digest) => {
                KeyLocator::KeyDigest(Bytes::copy_from_slice(digest))
            }
        }
    }

    fn inner_len(&self) -> usize {
        match self {
            KeyLocatorRef::Name(name) => tlv::tlv_len(types::NAME, name.value().len()),
            KeyLocatorRef::KeyDigest(digest) => tlv::tlv_len(types::KEY_DIGEST, digest.len()),
        }
    }

    pub(crate) fn wire_len(&self) -> usize {
        tlv::tlv_len(types::KEY_LOCATOR, self.inner_len())
    }

    pub(crate) fn encode(&self, buf: &mut impl BufMut) {
        tlv::write_header(buf, types::KEY_LOCATOR, self.inner_len());
        match self {
            KeyLocatorRef::Name(name) => tlv::write_tlv(buf, types::NAME, name.value()),
            KeyLocatorRef::KeyDigest(digest) => tlv::write_tlv(buf, types::KEY_DIGEST, digest),
        }
    }
}

/// When a certificate is valid: texts of the form `YYYYMMDDThhmmss`, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidityPeriod<'a> {
    /// First moment.
    pub not_before: &'a [u8],
    /// Last moment.
    pub not_after: &'a [u8],
}

/// A SignatureInfo or InterestSignatureInfo, borrowed from its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureInfo<'a> {
    /// One of [`signature_type`], or an unknown number.
    pub signature_type: u64,
    /// Where the key is.
    pub key_locator: Option<KeyLocatorRef<'a>>,
    /// SignatureNonce (Interest only).
    pub nonce: Option<&'a [u8]>,
    /// SignatureTime in milliseconds since the Unix epoch.
    pub time: Option<u64>,
    /// SignatureSeqNum (Interest only).
    pub seq_num: Option<u64>,
    /// ValidityPeriod (Data that is a certificate).
    pub validity: Option<ValidityPeriod<'a>>,
}

impl<'a> SignatureInfo<'a> {
    /// Bytes of the element in Data whose TLV-VALUE this is.
    pub(crate) fn tlv_len(value: &[u8]) -> usize {
        tlv::tlv_len(types::SIGNATURE_INFO, value.len())
    }

    /// Reads the TLV-VALUE of a SignatureInfo (`interest` false) or InterestSignatureInfo (`interest` true).
    pub(crate) fn parse(value: &'a [u8], interest: bool) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(value);
        let mut order = Order::default();
        let mut info = SignatureInfo {
            signature_type: 0,
            key_locator: None,
            nonce: None,
            time: None,
            seq_num: None,
            validity: None,
        };
        let mut typed = false;
        while let Some(e) = reader.next()? {
            match e.typ {
                types::SIGNATURE_TYPE if order.take(e.typ, 1)? => {
                    info.signature_type = e.nonneg()?;
                    typed = true;
                }
                types::KEY_LOCATOR if order.take(e.typ, 2)? => {
                    info.key_locator = Some(key_locator(e.value)?)
                }
                types::SIGNATURE_NONCE if interest => {
                    if order.take(e.typ, 3)? {
                        if e.value.is_empty() {
                            return Err(DecodeError::BadLength { typ: e.typ, len: 0 });
                        }
                        info.nonce = Some(e.value);
                    }
                }
                types::SIGNATURE_TIME => {
                    if order.take(e.typ, 4)? {
                        info.time = Some(e.nonneg()?);
                    }
                }
                types::SIGNATURE_SEQ_NUM if interest => {
                    if order.take(e.typ, 5)? {
                        info.seq_num = Some(e.nonneg()?);
                    }
                }
                types::VALIDITY_PERIOD if order.take(e.typ, 6)? => {
                    info.validity = Some(validity(e.value)?)
                }
                _ => Order::unknown(e.typ)?,
            }
        }
        if typed {
            Ok(info)
        } else {
            Err(DecodeError::Missing("SignatureType"))
        }
    }
}

pub(crate) fn key_locator(value: &[u8]) -> Result<KeyLocatorRef<'_>, DecodeError> {
    let mut reader = Reader::new(value);
    let mut found = None;
    while let Some(e) = reader.next()? {
        match e.typ {
            types::NAME | types::KEY_DIGEST if found.is_some() => {
                return Err(DecodeError::OutOfOrder(e.typ));
            }
            types::NAME => found = Some(KeyLocatorRef::Name(NameRef::from_value(e.value)?)),
            types::KEY_DIGEST => found = Some(KeyLocatorRef::KeyDigest(e.value)),
            _ => Order::unknown(e.typ)?,
        }
    }
    found.ok_or(DecodeError::Missing("Name or KeyDigest in KeyLocator"))
}

fn validity(value: &[u8]) -> Result<ValidityPeriod<'_>, DecodeError> {
    let mut reader = Reader::new(value);
    let mut order = Order::default();
    let (mut not_before, mut not_after) = (None, None);
    while let Some(e) = reader.next()? {
        match e.typ {
            types::NOT_BEFORE if order.take(e.typ, 1)? => not_before = Some(e.value),
            types::NOT_AFTER if order.take(e.typ, 2)? => not_after = Some(e.value),
            _ => Order::unknown(e.typ)?,
        }
    }
    match (not_before, not_after) {
        (Some(not_before), Some(not_after)) => Ok(ValidityPeriod {
            not_before,
            not_after,
        }),
        _ => Err(DecodeError::Missing(
            "NotBefore or NotAfter in ValidityPeriod",
        )),
    }
}
