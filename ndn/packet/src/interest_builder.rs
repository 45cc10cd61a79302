//! Making Interests.

use crate::name::put_component;
use crate::pieces::sha256_pieces;
use crate::tlv::{self, types};
use crate::{Component, Name, NameRef, Signer};
use bytes::{BufMut, Bytes, BytesMut};
use std::time::Duration;

/// Makes an Interest; see [`crate::Interest::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct InterestBuilder<'a> {
    name: &'a Name,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: Vec<Name>,
    nonce: Option<u32>,
    lifetime: Option<Duration>,
    hop_limit: Option<u8>,
    parameters: Option<Bytes>,
}

/// What goes into the InterestSignatureInfo beside type and KeyLocator, against replays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignedInterestFields {
    /// SignatureNonce.
    pub nonce: Option<u64>,
    /// SignatureTime, milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// SignatureSeqNum.
    pub seq_num: Option<u64>,
}

impl<'a> InterestBuilder<'a> {
    /// An Interest for `name` with default fields and no Nonce.
    pub fn new(name: &'a Name) -> Self {
        InterestBuilder {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: Vec::new(),
            nonce: None,
            lifetime: None,
            hop_limit: None,
            parameters: None,
        }
    }

    /// Whether Data with a longer name may answer.
    pub fn can_be_prefix(mut self, yes: bool) -> Self {
        self.can_be_prefix = yes;
        self
    }

    /// Whether stale Data may not answer.
    pub fn must_be_fresh(mut self, yes: bool) -> Self {
        self.must_be_fresh = yes;
        self
    }

    /// Adds a delegation's name to ForwardingHint.
    pub fn forwarding_hint(mut self, name: Name) -> Self {
        self.forwarding_hint.push(name);
        self
    }

    /// The Nonce; an Interest that goes to a face must have one.
    pub fn nonce(mut self, nonce: u32) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// The lifetime, sent in whole milliseconds; 4 s when not set.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// How many hops the Interest may go.
    pub fn hop_limit(mut self, hops: u8) -> Self {
        self.hop_limit = Some(hops);
        self
    }

    /// Parameters; the name gets their digest as its last component, or in the place of the one it has.
    pub fn application_parameters(mut self, parameters: impl Into<Bytes>) -> Self {
        self.parameters = Some(parameters.into());
        self
    }

    /// The packet.
    pub fn build(self) -> Bytes {
        let mut tail = BytesMut::new();
        if let Some(parameters) = &self.parameters {
            tlv::write_tlv(&mut tail, types::APPLICATION_PARAMETERS, parameters);
        }
        self.finish(self.name, &tail)
    }

    /// The packet as a signed Interest: the parameters digest becomes the last component of the name, and
    /// ApplicationParameters are empty when not set.
    pub fn sign<S: Signer + ?Sized>(self, signer: &S, fields: SignedInterestFields) -> Bytes {
        let mut tail = BytesMut::new();
        tlv::write_tlv(
            &mut tail,
            types::APPLICATION_PARAMETERS,
            self.parameters.as_deref().unwrap_or_default(),
        );
        let mut info = BytesMut::new();
        tlv::write_nonneg_tlv(&mut info, types::SIGNATURE_TYPE, signer.signature_type());
        if let Some(locator) = signer.key_locator() {
            locator.encode(&mut info);
        }
        if let Some(nonce) = fields.nonce {
            tlv::write_tlv(&mut info, types::SIGNATURE_NONCE, &nonce.to_be_bytes());
        }
        if let Some(time) = fields.time_ms {
            tlv::write_nonneg_tlv(&mut info, types::SIGNATURE_TIME, time);
        }
        if let Some(seq_num) = fields.seq_num {
            tlv::write_nonneg_tlv(&mut info, types::SIGNATURE_SEQ_NUM, seq_num);
        }
        tlv::write_tlv(&mut tail, types::INTEREST_SIGNATURE_INFO, &info);
        let name = without_digest(self.name.as_ref());
        let mut signature = BytesMut::new();
        signer.sign(&[name.value(), &tail], &mut signature);
        tlv::write_tlv(&mut tail, types::INTEREST_SIGNATURE_VALUE, &signature);
        self.finish(&name, &tail)
    }

    /// Puts the packet together around `tail`, the elements from ApplicationParameters on.
    fn finish(&self, name: &Name, tail: &[u8]) -> Bytes {
        let digest = (!tail.is_empty()).then(|| sha256_pieces(&[tail]));
        let named = digest.map(|d| with_digest(name.as_ref(), &d));
        let name = named.as_ref().unwrap_or(name);
        let hint: usize = self.forwarding_hint.iter().map(Name::wire_len).sum();
        let lifetime_ms = self
            .lifetime
            .map(|l| u64::try_from(l.as_millis()).unwrap_or(u64::MAX));
        let body = name.wire_len()
            + if self.can_be_prefix { 2 } else { 0 }
            + if self.must_be_fresh { 2 } else { 0 }
            + if hint > 0 {
                tlv::tlv_len(types::FORWARDING_HINT, hint)
            } else {
                0
            }
            + if self.nonce.is_some() { 6 } else { 0 }
            + lifetime_ms.map_or(0, |l| tlv::nonneg_tlv_len(types::INTEREST_LIFETIME, l))
            + if self.hop_limit.is_some() { 3 } else { 0 }
            + tail.len();
        let mut buf = BytesMut::with_capacity(tlv::tlv_len(types::INTEREST, body));
        tlv::write_header(&mut buf, types::INTEREST, body);
        name.encode(&mut buf);
        if self.can_be_prefix {
            tlv::write_header(&mut buf, types::CAN_BE_PREFIX, 0);
        }
        if self.must_be_fresh {
            tlv::write_header(&mut buf, types::MUST_BE_FRESH, 0);
        }
        if hint > 0 {
            tlv::write_header(&mut buf, types::FORWARDING_HINT, hint);
            self.forwarding_hint.iter().for_each(|n| n.encode(&mut buf));
        }
        if let Some(nonce) = self.nonce {
            tlv::write_tlv(&mut buf, types::NONCE, &nonce.to_be_bytes());
        }
        if let Some(lifetime) = lifetime_ms {
            tlv::write_nonneg_tlv(&mut buf, types::INTEREST_LIFETIME, lifetime);
        }
        if let Some(hops) = self.hop_limit {
            tlv::write_tlv(&mut buf, types::HOP_LIMIT, &[hops]);
        }
        buf.put_slice(tail);
        buf.freeze()
    }
}

/// The name without its ParametersSha256DigestComponent.
fn without_digest(name: NameRef<'_>) -> Name {
    name.components()
        .filter(|c| !c.is_params_digest())
        .collect()
}

/// The name with `digest` in the place of its ParametersSha256DigestComponent, or at the end.
fn with_digest(name: NameRef<'_>, digest: &[u8; 32]) -> Name {
    let component = Component {
        typ: types::PARAMETERS_SHA256_DIGEST,
        value: digest,
    };
    let mut buf = BytesMut::with_capacity(name.value().len() + component.wire_len());
    let mut placed = false;
    for c in name.components() {
        if !c.is_params_digest() {
            put_component(&mut buf, c);
        } else if !placed {
            placed = true;
            put_component(&mut buf, component);
        }
    }
    if !placed {
        put_component(&mut buf, component);
    }
    Name::from_checked(buf.freeze())
}
