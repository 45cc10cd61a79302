//! Name components and the naming conventions, revision 3.

use crate::tlv::{self, types};
use bytes::Bytes;
use std::cmp::Ordering;

/// A name component, borrowed.
///
/// Ordered canonically: by type number, then by length, then by bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Component<'a> {
    /// TLV-TYPE, 1 to 65535.
    pub typ: u16,
    /// TLV-VALUE.
    pub value: &'a [u8],
}

impl<'a> Component<'a> {
    /// A GenericNameComponent.
    pub const fn generic(value: &'a [u8]) -> Self {
        Component {
            typ: types::GENERIC_COMPONENT,
            value,
        }
    }

    /// A KeywordNameComponent (`32=`).
    pub const fn keyword(value: &'a [u8]) -> Self {
        Component {
            typ: types::KEYWORD_COMPONENT,
            value,
        }
    }

    /// The value as NonNegativeInteger, whatever the type; `None` when it is not one.
    pub fn as_number(&self) -> Option<u64> {
        tlv::read_nonneg(self.value).ok()
    }

    fn number_of(&self, typ: u16) -> Option<u64> {
        if self.typ == typ {
            self.as_number()
        } else {
            None
        }
    }

    /// The number of a segment component (`seg=`).
    pub fn as_segment(&self) -> Option<u64> {
        self.number_of(types::SEGMENT_COMPONENT)
    }

    /// The number of a byte-offset component (`off=`).
    pub fn as_byte_offset(&self) -> Option<u64> {
        self.number_of(types::BYTE_OFFSET_COMPONENT)
    }

    /// The number of a version component (`v=`).
    pub fn as_version(&self) -> Option<u64> {
        self.number_of(types::VERSION_COMPONENT)
    }

    /// The number of a timestamp component (`t=`), microseconds since the Unix epoch.
    pub fn as_timestamp(&self) -> Option<u64> {
        self.number_of(types::TIMESTAMP_COMPONENT)
    }

    /// The number of a sequence-number component (`seq=`).
    pub fn as_sequence(&self) -> Option<u64> {
        self.number_of(types::SEQUENCE_COMPONENT)
    }

    /// The bytes of a keyword component (`32=`).
    pub fn as_keyword(&self) -> Option<&'a [u8]> {
        (self.typ == types::KEYWORD_COMPONENT).then_some(self.value)
    }

    /// The bytes of a generic component.
    pub fn as_generic(&self) -> Option<&'a [u8]> {
        (self.typ == types::GENERIC_COMPONENT).then_some(self.value)
    }

    /// Whether this is an ImplicitSha256DigestComponent.
    pub fn is_implicit_digest(&self) -> bool {
        self.typ == types::IMPLICIT_SHA256_DIGEST
    }

    /// Whether this is a ParametersSha256DigestComponent.
    pub fn is_params_digest(&self) -> bool {
        self.typ == types::PARAMETERS_SHA256_DIGEST
    }

    /// Size on the wire in bytes, type and length included.
    pub fn wire_len(&self) -> usize {
        tlv::tlv_len(u32::from(self.typ), self.value.len())
    }

    /// A copy that owns its bytes.
    pub fn to_owned(&self) -> ComponentBuf {
        ComponentBuf::new(self.typ, self.value)
    }
}

impl PartialOrd for Component<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Component<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.typ, self.value.len(), self.value).cmp(&(other.typ, other.value.len(), other.value))
    }
}

/// A name component that owns its bytes. Numbers are kept in place, without allocation.
#[derive(Debug, Clone)]
pub struct ComponentBuf {
    typ: u16,
    value: Value,
}

#[derive(Debug, Clone)]
enum Value {
    Number([u8; 8], u8),
    Bytes(Bytes),
}

impl ComponentBuf {
    /// A component of any type.
    ///
    /// # Panics
    /// When `typ` is 0, or when `value` of a digest component is not 32 bytes long.
    pub fn new(typ: u16, value: &[u8]) -> Self {
        assert!(typ != 0, "a name component's type is 1 to 65535");
        assert!(
            typ > types::PARAMETERS_SHA256_DIGEST || value.len() == 32,
            "a digest component has 32 bytes"
        );
        ComponentBuf {
            typ,
            value: Value::Bytes(Bytes::copy_from_slice(value)),
        }
    }

    /// A component of any type above 2 with a NonNegativeInteger for a value.
    pub(crate) fn number(typ: u16, number: u64) -> Self {
        let mut value = [0; 8];
        let len = tlv::nonneg_len(number);
        tlv::write_nonneg(&mut &mut value[..], number);
        ComponentBuf {
            typ,
            value: Value::Number(value, len as u8),
        }
    }

    /// A GenericNameComponent.
    pub fn generic(value: impl AsRef<[u8]>) -> Self {
        Self::new(types::GENERIC_COMPONENT, value.as_ref())
    }

    /// A KeywordNameComponent (`32=`).
    pub fn keyword(value: impl AsRef<[u8]>) -> Self {
        Self::new(types::KEYWORD_COMPONENT, value.as_ref())
    }

    /// A segment number (`seg=`).
    pub fn segment(number: u64) -> Self {
        Self::number(types::SEGMENT_COMPONENT, number)
    }

    /// A byte offset (`off=`).
    pub fn byte_offset(number: u64) -> Self {
        Self::number(types::BYTE_OFFSET_COMPONENT, number)
    }

    /// A version (`v=`).
    pub fn version(number: u64) -> Self {
        Self::number(types::VERSION_COMPONENT, number)
    }

    /// A timestamp (`t=`) in microseconds since the Unix epoch.
    pub fn timestamp(number: u64) -> Self {
        Self::number(types::TIMESTAMP_COMPONENT, number)
    }

    /// A sequence number (`seq=`).
    pub fn sequence(number: u64) -> Self {
        Self::number(types::SEQUENCE_COMPONENT, number)
    }

    /// An ImplicitSha256DigestComponent (`sha256digest=`).
    pub fn implicit_digest(digest: &[u8; 32]) -> Self {
        Self::new(types::IMPLICIT_SHA256_DIGEST, digest)
    }

    /// A ParametersSha256DigestComponent (`params-sha256=`).
    pub fn params_digest(digest: &[u8; 32]) -> Self {
        Self::new(types::PARAMETERS_SHA256_DIGEST, digest)
    }

    /// The borrowed form.
    pub fn as_component(&self) -> Component<'_> {
        let value = match &self.value {
            Value::Number(bytes, len) => &bytes[..usize::from(*len)],
            Value::Bytes(bytes) => bytes,
        };
        Component {
            typ: self.typ,
            value,
        }
    }
}

impl PartialEq for ComponentBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_component() == other.as_component()
    }
}

impl Eq for ComponentBuf {}

/// Anything that is a name component: [`Component`], [`ComponentBuf`] and references to them.
pub trait AsComponent {
    /// The borrowed form.
    fn as_component(&self) -> Component<'_>;
}

impl AsComponent for Component<'_> {
    fn as_component(&self) -> Component<'_> {
        *self
    }
}

impl AsComponent for ComponentBuf {
    fn as_component(&self) -> Component<'_> {
        ComponentBuf::as_component(self)
    }
}

impl<T: AsComponent> AsComponent for &T {
    fn as_component(&self) -> Component<'_> {
        (**self).as_component()
    }
}
