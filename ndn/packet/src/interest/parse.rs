//! Reading an Interest's bytes.

use super::Interest;
use crate::tlv::{self, Order, Reader, Span, types};
use crate::{DecodeError, NameRef, SignatureInfo};
use bytes::Bytes;

impl Interest {
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
                    }
                }
                types::INTEREST_SIGNATURE_VALUE => {
                    if order.take(e.typ, 9)? {
                        self.signature_value = value;
                        self.signed_tail = Span {
                            start: self.tail.start,
                            end: e.start as u32,
                        };
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
