//! Interest packets: a view over their bytes.

use crate::key::sha256_pieces;
use crate::tlv::{self, Order, Reader, Span, types};
use crate::{DecodeError, InterestBuilder, Name, NameRef, SignatureInfo};
use bytes::{BufMut, Bytes, BytesMut};
use std::time::Duration;

/// Lifetime of an Interest that states none.
pub const DEFAULT_INTEREST_LIFETIME: Duration = Duration::from_millis(4000);

/// An Interest; cloning shares the bytes.
#[derive(Clone)]
pub struct Interest {
    wire: Bytes,
    /// Value of the Name.
    name: Span,
    /// Value of the ForwardingHint.
    hint: Span,
    /// Value of ApplicationParameters.
    parameters: Span,
    /// Start of the ApplicationParameters element up to the end of the packet.
    tail: Span,
    /// Value of InterestSignatureInfo.
    signature_info: Span,
    /// Value of InterestSignatureValue.
    signature_value: Span,
    /// Start of the ApplicationParameters element up to the end of InterestSignatureInfo.
    signed_tail: Span,
    /// Start of the ParametersSha256DigestComponent.
    params_digest: Span,
    lifetime_ms: Option<u64>,
    /// Where the four bytes of the Nonce are; 0 when there is none.
    nonce_at: u32,
    /// Where a Nonce is to be inserted.
    nonce_slot: u32,
    /// Where the byte of HopLimit is; 0 when there is none.
    hop_limit_at: u32,
    can_be_prefix: bool,
    must_be_fresh: bool,
}

impl Interest {
    /// Starts a new Interest for `name`.
    pub fn builder(name: &Name) -> InterestBuilder<'_> {
        InterestBuilder::new(name)
    }

    /// Reads an Interest that fills `wire`.
    ///
    /// # Errors
    /// [`DecodeError`] when the packet breaks a rule of Packet Format 0.3. The parameters digest is checked to be
    /// present exactly when there are parameters; its value is checked by [`Interest::verify_params_digest`].
    pub fn parse(wire: Bytes) -> Result<Self, DecodeError> {
        let outer = tlv::read_whole(&wire, types::INTEREST)?;
        let mut interest = Interest {
            name: Span::default(),
            hint: Span::default(),
            parameters: Span::default(),
            tail: Span::default(),
            signature_info: Span::default(),
            signature_value: Span::default(),
            signed_tail: Span::default(),
            params_digest: Span::default(),
            lifetime_ms: None,
            nonce_at: 0,
            nonce_slot: 0,
            hop_limit_at: 0,
            can_be_prefix: false,
            must_be_fresh: false,
            wire: Bytes::new(),
        };
        interest.read(&wire, outer.value_start)?;
        interest.wire = wire;
        Ok(interest)
    }

    fn read(&mut self, wire: &[u8], start: usize) -> Result<(), DecodeError> {
        let mut reader = Reader::within(wire, start, wire.len());
        let name = reader.next()?.ok_or(DecodeError::Missing("Name"))?;
        if name.typ != types::NAME {
            return Err(DecodeError::UnexpectedType {
                expected: types::NAME,
                found: name.typ,
            });
        }
        self.read_name(&name)?;
        let mut order = Order::default();
        self.nonce_slot = name.end as u32;
        while let Some(e) = reader.next()? {
            let value = Span::new(e.value_start, e.end);
            match e.typ {
                types::CAN_BE_PREFIX => {
                    if order.take(e.typ, 1)? {
                        flag(&e)?;
                        self.can_be_prefix = true;
                        self.nonce_slot = value.end;
                    }
                }
                types::MUST_BE_FRESH => {
                    if order.take(e.typ, 2)? {
                        flag(&e)?;
                        self.must_be_fresh = true;
                        self.nonce_slot = value.end;
                    }
                }
                types::FORWARDING_HINT => {
                    if order.take(e.typ, 3)? {
                        check_hint(e.value)?;
                        self.hint = value;
                        self.nonce_slot = value.end;
                    }
                }
                types::NONCE => {
                    if order.take(e.typ, 4)? {
                        fixed(&e, 4)?;
                        self.nonce_at = value.start;
                    }
                }
                types::INTEREST_LIFETIME => {
                    if order.take(e.typ, 5)? {
                        self.lifetime_ms = Some(e.nonneg()?);
                    }
                }
                types::HOP_LIMIT => {
                    if order.take(e.typ, 6)? {
                        fixed(&e, 1)?;
                        self.hop_limit_at = value.start;
                    }
                }
                types::APPLICATION_PARAMETERS => {
                    if order.take(e.typ, 7)? {
                        self.parameters = value;
                        self.tail = Span::new(e.start, wire.len());
                    }
                }
                types::INTEREST_SIGNATURE_INFO => {
                    if order.take(e.typ, 8)? {
                        SignatureInfo::parse(e.value, true)?;
                        self.signature_info = value;
                        self.signed_tail = Span {
                            start: self.tail.start,
                            end: value.end,
                        };
                    }
                }
                types::INTEREST_SIGNATURE_VALUE => {
                    if order.take(e.typ, 9)? {
                        self.signature_value = value;
                    }
                }
                _ => Order::unknown(e.typ)?,
            }
        }
        self.check()
    }

    fn read_name(&mut self, name: &tlv::Element<'_>) -> Result<(), DecodeError> {
        let mut pos = name.value_start;
        for c in NameRef::from_value(name.value)?.components() {
            let end = pos + c.wire_len();
            if c.is_params_digest() {
                if !self.params_digest.is_absent() {
                    return Err(DecodeError::Invalid(
                        "Name: more than one ParametersSha256DigestComponent",
                    ));
                }
                self.params_digest = Span::new(pos, end);
            }
            pos = end;
        }
        if name.value.is_empty() {
            return Err(DecodeError::Invalid(
                "Name: an Interest's name has at least one component",
            ));
        }
        self.name = Span::new(name.value_start, name.end);
        Ok(())
    }

    fn check(&self) -> Result<(), DecodeError> {
        if self.parameters.is_absent() {
            if !self.signature_info.is_absent() || !self.signature_value.is_absent() {
                return Err(DecodeError::Missing(
                    "ApplicationParameters of a signed Interest",
                ));
            }
            if !self.params_digest.is_absent() {
                return Err(DecodeError::Missing(
                    "ApplicationParameters for the digest in the Name",
                ));
            }
            return Ok(());
        }
        if self.params_digest.is_absent() {
            return Err(DecodeError::Missing("ParametersSha256DigestComponent"));
        }
        if self.signature_info.is_absent() != self.signature_value.is_absent() {
            return Err(DecodeError::Missing(
                "InterestSignatureInfo or InterestSignatureValue",
            ));
        }
        Ok(())
    }

    /// The whole packet.
    pub fn wire(&self) -> &Bytes {
        &self.wire
    }

    /// The name.
    pub fn name(&self) -> NameRef<'_> {
        NameRef::from_checked(self.name.of(&self.wire))
    }

    /// The name as an owned value that shares (and keeps alive) the packet's buffer.
    pub fn name_owned(&self) -> Name {
        Name::from_checked(self.wire.slice(self.name.range()))
    }

    /// Whether Data with a longer name may answer.
    pub fn can_be_prefix(&self) -> bool {
        self.can_be_prefix
    }

    /// Whether stale Data may not answer.
    pub fn must_be_fresh(&self) -> bool {
        self.must_be_fresh
    }

    /// The Nonce, its four bytes as a big-endian number.
    pub fn nonce(&self) -> Option<u32> {
        let at = self.nonce_at as usize;
        if at == 0 {
            return None;
        }
        self.wire[at..]
            .first_chunk()
            .map(|b| u32::from_be_bytes(*b))
    }

    /// The lifetime, if stated.
    pub fn lifetime(&self) -> Option<Duration> {
        self.lifetime_ms.map(Duration::from_millis)
    }

    /// The lifetime, 4 s if not stated.
    pub fn lifetime_or_default(&self) -> Duration {
        self.lifetime().unwrap_or(DEFAULT_INTEREST_LIFETIME)
    }

    /// Hops left, if limited.
    pub fn hop_limit(&self) -> Option<u8> {
        (self.hop_limit_at != 0).then(|| self.wire[self.hop_limit_at as usize])
    }

    /// Names of the delegations in ForwardingHint, in order of preference.
    pub fn forwarding_hint(&self) -> impl Iterator<Item = NameRef<'_>> {
        let mut reader = Reader::new(self.hint.of(&self.wire));
        std::iter::from_fn(move || {
            loop {
                match reader.next().ok()?? {
                    e if e.typ == types::NAME => return Some(NameRef::from_checked(e.value)),
                    _ => {}
                }
            }
        })
    }

    /// ApplicationParameters, shared.
    pub fn application_parameters(&self) -> Option<Bytes> {
        (!self.parameters.is_absent()).then(|| self.wire.slice(self.parameters.range()))
    }

    /// InterestSignatureInfo of a signed Interest.
    pub fn signature_info(&self) -> Option<SignatureInfo<'_>> {
        if self.signature_info.is_absent() {
            return None;
        }
        SignatureInfo::parse(self.signature_info.of(&self.wire), true).ok()
    }

    /// InterestSignatureValue of a signed Interest.
    pub fn signature_value(&self) -> Option<&[u8]> {
        (!self.signature_value.is_absent()).then(|| self.signature_value.of(&self.wire))
    }

    /// What the signature of a signed Interest covers, in three pieces (some may be empty): the name's components
    /// before and after the parameters digest, then ApplicationParameters up to InterestSignatureInfo.
    pub fn signed_portion(&self) -> [&[u8]; 3] {
        let digest = if self.params_digest.is_absent() {
            Span {
                start: self.name.end,
                end: self.name.end,
            }
        } else {
            self.params_digest
        };
        [
            Span {
                start: self.name.start,
                end: digest.start,
            }
            .of(&self.wire),
            Span {
                start: digest.end,
                end: self.name.end,
            }
            .of(&self.wire),
            self.signed_tail.of(&self.wire),
        ]
    }

    /// Whether the ParametersSha256DigestComponent is right; true for an Interest without parameters.
    pub fn verify_params_digest(&self) -> bool {
        if self.parameters.is_absent() {
            return true;
        }
        let component = self.params_digest.of(&self.wire);
        component.len() > 32
            && component[component.len() - 32..] == sha256_pieces(&[self.tail.of(&self.wire)])
    }

    /// The same Interest with another hop limit; the bytes are copied once. An Interest without HopLimit is returned
    /// as it is.
    pub fn with_hop_limit(&self, hops: u8) -> Interest {
        self.patched(self.hop_limit_at as usize, &[hops])
    }

    /// The same Interest with one hop less, as a forwarder sends it; `None` when no hops are left. Without HopLimit
    /// the bytes are shared.
    pub fn with_hop_limit_decremented(&self) -> Option<Interest> {
        match self.hop_limit() {
            None => Some(self.clone()),
            Some(0) => None,
            Some(hops) => Some(self.with_hop_limit(hops - 1)),
        }
    }

    /// The same Interest with this Nonce, whether it had one or not; the bytes are copied once.
    pub fn with_nonce(&self, nonce: u32) -> Interest {
        if self.nonce_at != 0 {
            return self.patched(self.nonce_at as usize, &nonce.to_be_bytes());
        }
        let outer = self.name.start as usize - name_header_len(self.name);
        let slot = self.nonce_slot as usize;
        let element = [types::NONCE as u8, 4];
        let body = self.wire.len() - outer + element.len() + 4;
        let mut buf = BytesMut::with_capacity(tlv::tlv_len(types::INTEREST, body));
        tlv::write_header(&mut buf, types::INTEREST, body);
        buf.put_slice(&self.wire[outer..slot]);
        buf.put_slice(&element);
        buf.put_u32(nonce);
        buf.put_slice(&self.wire[slot..]);
        Interest::parse(buf.freeze()).unwrap_or_else(|_| self.clone())
    }

    fn patched(&self, at: usize, bytes: &[u8]) -> Interest {
        let mut copy = self.clone();
        if at != 0 && self.wire[at..at + bytes.len()] != *bytes {
            let mut wire = BytesMut::from(&self.wire[..]);
            wire[at..at + bytes.len()].copy_from_slice(bytes);
            copy.wire = wire.freeze();
        }
        copy
    }
}

/// Size of a Name element's type and length.
fn name_header_len(value: Span) -> usize {
    let len = value.range().len();
    tlv::tlv_len(types::NAME, len) - len
}

fn flag(e: &tlv::Element<'_>) -> Result<(), DecodeError> {
    fixed(e, 0)
}

fn fixed(e: &tlv::Element<'_>, len: usize) -> Result<(), DecodeError> {
    if e.value.len() == len {
        Ok(())
    } else {
        Err(DecodeError::BadLength {
            typ: e.typ,
            len: e.value.len(),
        })
    }
}

fn check_hint(value: &[u8]) -> Result<(), DecodeError> {
    let mut reader = Reader::new(value);
    let mut names = 0;
    while let Some(e) = reader.next()? {
        if e.typ == types::NAME {
            NameRef::from_value(e.value)?;
            names += 1;
        } else {
            Order::unknown(e.typ)?;
        }
    }
    if names == 0 {
        Err(DecodeError::Missing("Name in ForwardingHint"))
    } else {
        Ok(())
    }
}

impl std::fmt::Debug for Interest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interest")
            .field("name", &self.name())
            .field("can_be_prefix", &self.can_be_prefix)
            .field("must_be_fresh", &self.must_be_fresh)
            .field("nonce", &self.nonce())
            .field("lifetime", &self.lifetime())
            .field("hop_limit", &self.hop_limit())
            .field("len", &self.wire.len())
            .finish()
    }
}

impl PartialEq for Interest {
    fn eq(&self, other: &Self) -> bool {
        self.wire == other.wire
    }
}

impl Eq for Interest {}
