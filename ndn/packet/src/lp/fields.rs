//! Small values in link-layer headers.

use crate::DecodeError;
use std::fmt;

/// Why an Interest came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NackReason {
    /// None stated.
    None,
    /// The link is congested.
    Congestion,
    /// The Nonce was seen before.
    Duplicate,
    /// There is no way to the name.
    NoRoute,
    /// Another number.
    Other(u64),
}

impl NackReason {
    /// Number on the wire.
    pub const fn code(self) -> u64 {
        match self {
            NackReason::None => 0,
            NackReason::Congestion => 50,
            NackReason::Duplicate => 100,
            NackReason::NoRoute => 150,
            NackReason::Other(code) => code,
        }
    }

    /// Reason of this number on the wire.
    pub const fn from_code(code: u64) -> Self {
        match code {
            0 => NackReason::None,
            50 => NackReason::Congestion,
            100 => NackReason::Duplicate,
            150 => NackReason::NoRoute,
            other => NackReason::Other(other),
        }
    }
}

impl fmt::Display for NackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NackReason::None => f.write_str("none"),
            NackReason::Congestion => f.write_str("congestion"),
            NackReason::Duplicate => f.write_str("duplicate"),
            NackReason::NoRoute => f.write_str("no route"),
            NackReason::Other(code) => write!(f, "{code}"),
        }
    }
}

/// Where a fragment lies that its receiver reads out of memory which both ends of a face see. Trunkline's own, for faces
/// that have agreed to it; `ndn-io` says how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lent {
    /// Place in the table by which the receiver says that it needs the bytes no more.
    pub place: u16,
    /// Bytes of the fragment.
    pub len: u32,
    /// Where it begins in the memory, in bytes.
    pub offset: u64,
}

impl Lent {
    /// Length on the wire in bytes.
    pub const WIRE_LEN: usize = 14;

    /// The value of its element.
    pub(super) fn encode(self) -> [u8; Self::WIRE_LEN] {
        let mut value = [0; Self::WIRE_LEN];
        value[..2].copy_from_slice(&self.place.to_be_bytes());
        value[2..6].copy_from_slice(&self.len.to_be_bytes());
        value[6..].copy_from_slice(&self.offset.to_be_bytes());
        value
    }

    /// Reads the value of its element.
    pub(super) fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let bad = DecodeError::BadLength {
            typ: super::types::LENT,
            len: value.len(),
        };
        let (place, rest) = value.split_first_chunk().ok_or(bad.clone())?;
        let (len, rest) = rest.split_first_chunk().ok_or(bad.clone())?;
        let offset = rest.try_into().map_err(|_| bad)?;
        Ok(Lent {
            place: u16::from_be_bytes(*place),
            len: u32::from_be_bytes(*len),
            offset: u64::from_be_bytes(offset),
        })
    }
}

/// Token that an Interest carries and its answer brings back, 1 to 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PitToken {
    len: u8,
    bytes: [u8; 32],
}

impl PitToken {
    /// The token of these bytes.
    ///
    /// # Errors
    /// [`DecodeError::BadLength`] when they are not 1 to 32.
    pub fn new(token: &[u8]) -> Result<Self, DecodeError> {
        if token.is_empty() || token.len() > 32 {
            return Err(DecodeError::BadLength {
                typ: super::types::PIT_TOKEN,
                len: token.len(),
            });
        }
        let mut bytes = [0; 32];
        bytes[..token.len()].copy_from_slice(token);
        Ok(PitToken {
            len: token.len() as u8,
            bytes,
        })
    }

    /// A token of 6 bytes, the only length that NDNd's forwarder survives: the low 48 bits of a number.
    pub fn from_u48(token: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..6].copy_from_slice(&token.to_be_bytes()[2..]);
        PitToken { len: 6, bytes }
    }

    /// The number of a token of 6 bytes.
    pub fn as_u48(&self) -> Option<u64> {
        let token: [u8; 6] = self.as_slice().try_into().ok()?;
        let [a, b, c, d, e, f] = token;
        Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for PitToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PitToken({})", hex::encode(self.as_slice()))
    }
}
