//! What can be wrong with bytes, names and keys.

/// Why bytes are not a well-formed packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The buffer ends inside an element.
    #[error("truncated: an element reaches beyond the end of its buffer")]
    Truncated,
    /// A VAR-NUMBER or a number is not in its shortest form, or a number is not 1, 2, 4 or 8 bytes long.
    #[error("a number is not in its shortest form")]
    NonMinimal,
    /// A TLV-TYPE is 0 or above 2^32-1 (above 65535 for a name component).
    #[error("type number {0} is out of range")]
    TypeOutOfRange(u64),
    /// A packet is larger than the face accepts.
    #[error("packet of {len} bytes exceeds the limit of {max} bytes")]
    TooLarge {
        /// Size that the packet's header claims, in bytes.
        len: u64,
        /// Greatest size accepted, in bytes.
        max: usize,
    },
    /// An element of another type was expected here.
    #[error("expected an element of type {expected:#x}, found {found:#x}")]
    UnexpectedType {
        /// Type number that belongs here.
        expected: u32,
        /// Type number found.
        found: u32,
    },
    /// An element that may not be ignored is unknown.
    #[error("unrecognized critical element of type {0:#x}")]
    UnknownCritical(u32),
    /// A critical element stands out of order or twice.
    #[error("critical element of type {0:#x} is out of order or repeated")]
    OutOfOrder(u32),
    /// An element's TLV-LENGTH does not fit its type.
    #[error("element of type {typ:#x} has the wrong length {len}")]
    BadLength {
        /// Type number of the element.
        typ: u32,
        /// Its TLV-LENGTH in bytes.
        len: usize,
    },
    /// An element's value is not allowed.
    #[error("invalid {0}")]
    Invalid(&'static str),
    /// A required element is absent.
    #[error("missing {0}")]
    Missing(&'static str),
    /// Bytes follow the packet.
    #[error("{0} bytes follow the packet")]
    TrailingBytes(usize),
}

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text has another scheme than `ndn:` or does not begin with a slash.
    #[error("`{0}` is not a name: write it as /component/component")]
    NotNdn(String),
    /// The part before `=` is neither a number from 1 to 65535 nor a known form.
    #[error(
        "component `{0}`: unknown type; use a number, seg, off, v, t, seq, sha256digest or params-sha256, and write a literal `=` as %3D"
    )]
    UnknownType(String),
    /// The part after `=` does not fit the type.
    #[error("component `{0}`: the value does not fit its type")]
    BadValue(String),
    /// A percent sign without two hexadecimal digits.
    #[error("component `{0}`: `%` must be followed by two hexadecimal digits")]
    BadEscape(String),
    /// An empty component, `.` or `..`.
    #[error("component `{0}` is not allowed: an empty one is written `...`")]
    Forbidden(String),
}

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes are not a PKCS#8 key of this kind.
    #[error("not a PKCS#8 private key for {0}: {1}")]
    Pkcs8(&'static str, String),
    /// The bytes are not a SubjectPublicKeyInfo of a kind that is supported.
    #[error("not a SubjectPublicKeyInfo of an ECDSA P-256 or Ed25519 key")]
    PublicKey,
    /// The system's random source failed.
    #[error("the system's random source failed")]
    Random,
}
