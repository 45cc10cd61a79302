//! Names: a shared slice of bytes that holds the TLV-VALUE of a Name.

use crate::tlv::{self, types};
use crate::{AsComponent, Component, ComponentBuf, DecodeError};
use bytes::{Bytes, BytesMut};
use std::borrow::Borrow;

/// An NDN name; cloning and taking prefixes shares the bytes.
///
/// Equality, order (canonical) and hash are those of the TLV-VALUE's bytes: because numbers are in their shortest
/// form, comparing bytes compares component by component by type, length and value. `Borrow<[u8]>` lets a map keyed
/// by `Name` be asked with [`NameRef::value`].
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Bytes);

/// A name somewhere in a packet, borrowed; order and hash as [`Name`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameRef<'a>(&'a [u8]);

impl Name {
    /// The empty name, `/`.
    pub const fn new() -> Self {
        Name(Bytes::new())
    }

    /// The name whose TLV-VALUE is `value`.
    ///
    /// # Errors
    /// When `value` is not a sequence of well-formed name components.
    pub fn from_value(value: Bytes) -> Result<Self, DecodeError> {
        NameRef::from_value(&value)?;
        Ok(Name(value))
    }

    /// As [`Name::from_value`], for bytes known to be components.
    pub(crate) fn from_checked(value: Bytes) -> Self {
        Name(value)
    }

    /// The name of these components.
    pub fn from_components<C: AsComponent>(components: impl IntoIterator<Item = C>) -> Self {
        let mut buf = BytesMut::new();
        for c in components {
            put_component(&mut buf, c.as_component());
        }
        Name(buf.freeze())
    }

    /// The borrowed form.
    #[allow(clippy::should_implement_trait)]
    pub fn as_ref(&self) -> NameRef<'_> {
        NameRef(&self.0)
    }

    /// TLV-VALUE of the name.
    pub fn value(&self) -> &[u8] {
        &self.0
    }

    /// TLV-VALUE of the name, shared.
    pub fn value_bytes(&self) -> &Bytes {
        &self.0
    }

    /// A copy whose bytes are its own, so that it does not keep a packet's buffer alive.
    pub fn compact(&self) -> Name {
        Name(Bytes::copy_from_slice(&self.0))
    }

    /// Number of components.
    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    /// Whether the name has no components.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The components in order.
    pub fn components(&self) -> Components<'_> {
        self.as_ref().components()
    }

    /// The component at `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<Component<'_>> {
        self.as_ref().get(index)
    }

    /// The last component.
    pub fn last(&self) -> Option<Component<'_>> {
        self.as_ref().last()
    }

    /// The first `n` components (all, when there are fewer), sharing the bytes.
    pub fn prefix(&self, n: usize) -> Name {
        Name(self.0.slice(..self.as_ref().prefix(n).0.len()))
    }

    /// All components but the last, sharing the bytes; the empty name's parent is itself.
    pub fn parent(&self) -> Name {
        Name(self.0.slice(..self.as_ref().parent().0.len()))
    }

    /// This name and one more component.
    pub fn append(&self, component: impl AsComponent) -> Name {
        self.as_ref().append(component)
    }

    /// This name and a segment number (`seg=`).
    pub fn append_segment(&self, segment: u64) -> Name {
        self.append(ComponentBuf::segment(segment))
    }

    /// This name and a version (`v=`).
    pub fn append_version(&self, version: u64) -> Name {
        self.append(ComponentBuf::version(version))
    }

    /// This name and a keyword (`32=`).
    pub fn append_keyword(&self, keyword: impl AsRef<[u8]>) -> Name {
        self.append(Component::keyword(keyword.as_ref()))
    }

    /// This name and a generic component.
    pub fn append_generic(&self, value: impl AsRef<[u8]>) -> Name {
        self.append(Component::generic(value.as_ref()))
    }

    /// This name followed by all components of `suffix`.
    pub fn join(&self, suffix: &Name) -> Name {
        let mut buf = BytesMut::with_capacity(self.0.len() + suffix.0.len());
        buf.extend_from_slice(&self.0);
        buf.extend_from_slice(&suffix.0);
        Name(buf.freeze())
    }

    /// Whether `other` begins with all components of this name (or is equal to it).
    pub fn is_prefix_of(&self, other: &Name) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Size on the wire in bytes, type and length included.
    pub fn wire_len(&self) -> usize {
        tlv::tlv_len(types::NAME, self.0.len())
    }

    /// Writes the whole Name element.
    pub fn encode(&self, buf: &mut impl bytes::BufMut) {
        tlv::write_tlv(buf, types::NAME, &self.0);
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> From<&'a Name> for NameRef<'a> {
    fn from(name: &'a Name) -> Self {
        name.as_ref()
    }
}

impl<C: AsComponent> FromIterator<C> for Name {
    fn from_iter<I: IntoIterator<Item = C>>(components: I) -> Self {
        Name::from_components(components)
    }
}

impl<'a> NameRef<'a> {
    /// The name whose TLV-VALUE is `value`.
    ///
    /// # Errors
    /// When `value` is not a sequence of well-formed name components.
    pub fn from_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = value;
        while !rest.is_empty() {
            rest = split_component(rest)?.1;
        }
        Ok(NameRef(value))
    }

    /// As [`NameRef::from_value`], for bytes known to be components.
    pub(crate) fn from_checked(value: &'a [u8]) -> Self {
        NameRef(value)
    }

    /// TLV-VALUE of the name.
    pub fn value(&self) -> &'a [u8] {
        self.0
    }

    /// A copy that owns its bytes.
    pub fn to_name(&self) -> Name {
        Name(Bytes::copy_from_slice(self.0))
    }

    /// Number of components.
    pub fn len(&self) -> usize {
        self.components().count()
    }

    /// Whether the name has no components.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The components in order.
    pub fn components(&self) -> Components<'a> {
        Components(self.0)
    }

    /// Where each component ends in [`NameRef::value`], in bytes: `value()[..end]` are the prefixes from one component on.
    pub fn prefix_ends(&self) -> impl Iterator<Item = usize> + use<'a> {
        let mut end = 0;
        self.components().map(move |c| {
            end += c.wire_len();
            end
        })
    }

    /// The component at `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<Component<'a>> {
        self.components().nth(index)
    }

    /// The last component.
    pub fn last(&self) -> Option<Component<'a>> {
        self.components().next_back()
    }

    /// The first `n` components (all, when there are fewer).
    pub fn prefix(&self, n: usize) -> NameRef<'a> {
        let mut components = self.components();
        for _ in 0..n {
            if components.next().is_none() {
                break;
            }
        }
        NameRef(&self.0[..self.0.len() - components.0.len()])
    }

    /// All components but the last; the empty name's parent is itself.
    pub fn parent(&self) -> NameRef<'a> {
        let last = self.last().map_or(0, |c| c.wire_len());
        NameRef(&self.0[..self.0.len() - last])
    }

    /// This name and one more component, as a new name.
    pub fn append(&self, component: impl AsComponent) -> Name {
        let component = component.as_component();
        let mut buf = BytesMut::with_capacity(self.0.len() + component.wire_len());
        buf.extend_from_slice(self.0);
        put_component(&mut buf, component);
        Name(buf.freeze())
    }

    /// Whether `other` begins with all components of this name (or is equal to it).
    pub fn is_prefix_of<'b>(&self, other: impl Into<NameRef<'b>>) -> bool {
        other.into().0.starts_with(self.0)
    }
}

impl PartialEq<Name> for NameRef<'_> {
    fn eq(&self, other: &Name) -> bool {
        self.0 == other.value()
    }
}

impl PartialEq<NameRef<'_>> for Name {
    fn eq(&self, other: &NameRef<'_>) -> bool {
        self.value() == other.0
    }
}

pub(crate) fn put_component(buf: &mut BytesMut, c: Component<'_>) {
    tlv::write_tlv(buf, u32::from(c.typ), c.value);
}

/// Splits the first component off, checking it.
#[inline]
fn split_component(buf: &[u8]) -> Result<(Component<'_>, &[u8]), DecodeError> {
    let (typ, len, header) = tlv::read_header(buf)?;
    let rest = &buf[header..];
    let typ = u16::try_from(typ).map_err(|_| DecodeError::TypeOutOfRange(u64::from(typ)))?;
    if len > rest.len() as u64 {
        return Err(DecodeError::Truncated);
    }
    let (value, rest) = rest.split_at(len as usize);
    if typ <= types::PARAMETERS_SHA256_DIGEST && value.len() != 32 {
        return Err(DecodeError::BadLength {
            typ: u32::from(typ),
            len: value.len(),
        });
    }
    Ok((Component { typ, value }, rest))
}

/// The components of a name, in order. Walking backward costs a walk over the name for each step.
#[derive(Debug, Clone)]
pub struct Components<'a>(&'a [u8]);

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    #[inline]
    fn next(&mut self) -> Option<Component<'a>> {
        let (component, rest) = split_component(self.0).ok()?;
        self.0 = rest;
        Some(component)
    }
}

impl DoubleEndedIterator for Components<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let last = self.clone().reduce(|_, later| later)?;
        self.0 = &self.0[..self.0.len() - last.wire_len()];
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    #[test]
    fn canonical_order() {
        let sorted = [
            "/",
            "/sha256digest=0000000000000000000000000000000000000000000000000000000000000000",
            "/sha256digest=0000000000000000000000000000000000000000000000000000000000000001",
            "/params-sha256=0000000000000000000000000000000000000000000000000000000000000000",
            "/3=...",
            "/3=D",
            "/3=D/x",
            "/3=F",
            "/3=AA",
            "/...",
            "/D",
            "/D/sha256digest=0000000000000000000000000000000000000000000000000000000000000000",
            "/D/D",
            "/F",
            "/AA",
            "/21426=...",
        ];
        for pair in sorted.windows(2) {
            assert!(name(pair[0]) < name(pair[1]), "{pair:?}");
            assert!(name(pair[0]).as_ref() < name(pair[1]).as_ref(), "{pair:?}");
        }
        let long = Name::new().append_generic(vec![0; 253]);
        let short = Name::new().append_generic(vec![255; 252]);
        assert!(short < long);
        assert!(short.get(0).unwrap() < long.get(0).unwrap());
    }

    #[test]
    fn parts_share_the_bytes() {
        let all = name("/a/32=k/v=3/seg=256");
        assert_eq!(all.len(), 4);
        assert_eq!(all.prefix(2), name("/a/32=k"));
        assert_eq!(all.prefix(2).value().as_ptr(), all.value().as_ptr());
        assert_eq!((all.prefix(0), all.prefix(9)), (Name::new(), all.clone()));
        assert_eq!(all.parent(), name("/a/32=k/v=3"));
        assert_eq!(Name::new().parent(), Name::new());
        assert_eq!(all.get(3).unwrap().as_segment(), Some(256));
        assert_eq!(all.get(3).unwrap().as_version(), None);
        assert_eq!(all.get(1).unwrap().as_keyword(), Some(&b"k"[..]));
        assert_eq!(all.get(4), None);
        assert_eq!(all.last().unwrap().as_segment(), Some(256));
        let back: Vec<_> = all.components().rev().map(|c| c.to_string()).collect();
        assert_eq!(back, ["seg=256", "v=3", "32=k", "a"]);
        let ends: Vec<_> = all.as_ref().prefix_ends().collect();
        assert_eq!(ends, [3, 6, 9, 13]);
    }

    #[test]
    fn names_are_put_together() {
        let made = name("/a")
            .append_keyword("k")
            .append_version(3)
            .append_segment(256);
        assert_eq!(made, name("/a/32=k/v=3/seg=256"));
        assert_eq!(name("/a/b").join(&name("/c")), name("/a/b/c"));
        assert_eq!(name("/a").append(made.get(3).unwrap()), name("/a/seg=256"));
        assert_eq!(made.components().collect::<Name>(), made);
        assert_eq!(made.compact(), made);
    }

    #[test]
    fn prefixes_end_at_components() {
        assert!(name("/a").is_prefix_of(&name("/a/b")));
        assert!(name("/").is_prefix_of(&name("/a")));
        assert!(name("/a").is_prefix_of(&name("/a")));
        assert!(!name("/a").is_prefix_of(&name("/ab")));
        assert!(!name("/a/b").is_prefix_of(&name("/a")));
        assert!(name("/a").as_ref().is_prefix_of(&name("/a/b")));
    }

    #[test]
    fn a_map_is_asked_without_a_name_of_its_own() {
        let map = std::collections::HashMap::from([(name("/a/b"), 1)]);
        assert_eq!(map.get(name("/a/b/c").prefix(2).as_ref().value()), Some(&1));
    }

    #[test]
    fn only_components_make_a_name() {
        for bad in [
            "08",
            "0802 41",
            "0000",
            "fe0001000000",
            "0102 0000",
            "fd00080141",
        ] {
            assert!(Name::from_value(hex(bad)).is_err(), "{bad}");
        }
        assert_eq!(Name::from_value(hex("080141")).unwrap(), name("/A"));
    }
}
