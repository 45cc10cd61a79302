//! Interest packets: a view over their bytes.

mod parse;
#[cfg(test)]
mod tests;

use crate::pieces::sha256_pieces;
use crate::tlv::{self, Reader, Span, types};
use crate::{InterestBuilder, Name, NameRef, SignatureInfo};
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
    /// Start of the ApplicationParameters element up to InterestSignatureValue.
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

    /// The whole packet.
    pub fn wire(&self) -> &Bytes {
        &self.wire
    }

    /// A copy whose bytes are its own, so that it does not keep a larger buffer alive; nothing is parsed again.
    pub fn compact(&self) -> Interest {
        Interest {
            wire: Bytes::copy_from_slice(&self.wire),
            ..self.clone()
        }
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
    /// before and after the parameters digest, then ApplicationParameters up to, without, InterestSignatureValue.
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
