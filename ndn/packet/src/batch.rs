//! One signature for a batch of packets: a Merkle tree over them, whose root a key has signed.
//!
//! Each packet of a batch is signed with DigestSha256, as any consumer checks it. Its SignatureInfo has one more element,
//! whose type number says that it may be ignored: the root's signature, the packet's place, and the digests that lead
//! from it to the root. So each packet is verified alone, by whoever has it, and the signature once for all of a batch.
//!
//! ```text
//!                 root ◀── signed: 00, "trunkline batch signature 1", root
//!               ╱      ╲
//!          01, left, right               SHA-256 of these 65 bytes
//!         ╱     ╲        ╲
//!     packet  packet   …                 SHA-256 of Name up to, without, SignatureInfo; zeros for what is beyond the last
//! ```
//! A packet begins with 07, an inner node with 01, and what is signed with 00, as no packet and no Interest does: none can
//! be taken for another. The idea is that of batch signing in TLS (draft-davidben-tls-batch-signing).

use ring::digest::{Context, SHA256};

use crate::signature::key_locator;
use crate::tlv::{self, Element, Reader, types};
use crate::{
    Data, DecodeError, KeyLocatorRef, KnownRoots, SignatureInfo, Verifier, signature_type,
};

/// Bytes of a SHA-256.
pub(crate) const DIGEST: usize = 32;
/// Greatest number of digests between a packet and the root: a batch has no more packets than 2 to this.
const MAX_DEPTH: usize = 16;
/// What precedes a root where it is signed.
const SIGNED: &[u8] = b"\0trunkline batch signature 1";
/// Roots whose signatures are remembered.
const KNOWN_ROOTS: usize = 8;

/// A packet's share of a batch's signature, borrowed from the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSignature<'a> {
    /// How the root is signed: one of [`signature_type`], or an unknown number.
    pub signature_type: u64,
    /// Where the key is.
    pub key_locator: Option<KeyLocatorRef<'a>>,
    /// The packet's place among those of the batch, from 0 on.
    place: u64,
    /// Digests of what it is joined with on the way to the root, 32 bytes each.
    path: &'a [u8],
    /// Over the root.
    signature: &'a [u8],
}

/// A digest in the tree.
pub(crate) type Node = [u8; DIGEST];

impl<'a> BatchSignature<'a> {
    /// The one that a packet has, if it has one and nothing else that would make it another kind of packet.
    ///
    /// # Errors
    /// [`DecodeError`] where it breaks the rules above.
    pub fn of(data: &'a Data) -> Result<Option<Self>, DecodeError> {
        if data.signature_type() != signature_type::DIGEST_SHA256 {
            return Ok(None);
        }
        let mut reader = Reader::new(data.signature_info_value());
        let is = |e: Option<Element<'_>>, typ| e.is_some_and(|e| e.typ == typ);
        if !is(reader.next()?, types::SIGNATURE_TYPE) {
            return Ok(None);
        }
        match reader.next()? {
            Some(e) if e.typ == types::BATCH_SIGNATURE && reader.next()?.is_none() => {
                Self::parse(e.value).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Reads the element's value: all of it has its place, and nothing else may be there.
    fn parse(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(value);
        let mut next = || reader.next();
        let wanted = |e: Option<Element<'a>>, typ: u32, what: &'static str| match e {
            Some(e) if e.typ == typ => Ok(e),
            Some(e) => Err(DecodeError::UnexpectedType {
                expected: typ,
                found: e.typ,
            }),
            None => Err(DecodeError::Missing(what)),
        };
        let kind = wanted(next()?, types::SIGNATURE_TYPE, "SignatureType")?.nonneg()?;
        let mut e = next()?;
        let mut locator = None;
        if let Some(found) = e.filter(|e| e.typ == types::KEY_LOCATOR) {
            locator = Some(key_locator(found.value)?);
            e = next()?;
        }
        let place = wanted(e, types::BATCH_PLACE, "BatchPlace")?.nonneg()?;
        let path = wanted(next()?, types::BATCH_PATH, "BatchPath")?.value;
        let signature = wanted(next()?, types::SIGNATURE_VALUE, "SignatureValue")?.value;
        if let Some(beyond) = next()? {
            return Err(DecodeError::OutOfOrder(beyond.typ));
        }
        let depth = path.len() / DIGEST;
        if !path.len().is_multiple_of(DIGEST) || depth > MAX_DEPTH {
            return Err(DecodeError::BadLength {
                typ: types::BATCH_PATH,
                len: path.len(),
            });
        }
        if place >> depth != 0 {
            return Err(DecodeError::Invalid(
                "BatchPlace: the batch has fewer packets",
            ));
        }
        Ok(Self {
            signature_type: kind,
            key_locator: locator,
            place,
            path,
            signature,
        })
    }

    /// The root of the tree that has this packet in its place.
    fn root(&self, packet: Node) -> Node {
        let (path, _) = self.path.as_chunks::<DIGEST>();
        let join = |(below, place): (Node, u64), beside: &Node| {
            let above = match place % 2 {
                0 => joined(&below, beside),
                _ => joined(beside, &below),
            };
            (above, place / 2)
        };
        path.iter().fold((packet, self.place), join).0
    }
}

impl Verifier {
    /// Whether this key has signed the batch that the packet is one of, and the packet is whole. Takes one pass of SHA-256
    /// over it; the signature is verified once for each of the `known` roots.
    pub(crate) fn verify_batched(&self, data: &Data, known: &mut KnownRoots) -> bool {
        let Ok(Some(batch)) = BatchSignature::of(data) else {
            return false;
        };
        let signed = data.signed_portion();
        let info = SignatureInfo::tlv_len(data.signature_info_value());
        // What follows SignatureInfo is none of the packet's signed parts.
        let Some(body) = signed
            .len()
            .checked_sub(info)
            .filter(|_| data.signature_info_ends_signed())
        else {
            return false;
        };
        let mut digest = Context::new(&SHA256);
        digest.update(&signed[..body]);
        let packet = node(digest.clone());
        digest.update(&signed[body..]);
        if batch.signature_type != self.signature_type() || node(digest) != data.signature_value() {
            return false;
        }
        let root = batch.root(packet);
        let is_known = |(known, by): &(Node, Vec<u8>)| *known == root && by == batch.signature;
        if known.0.iter().any(is_known) {
            return true;
        }
        let holds = self.verify_pieces(
            batch.signature_type,
            &[&signed_root(&root)],
            batch.signature,
        );
        if holds {
            known.0.truncate(KNOWN_ROOTS - 1);
            known.0.push_front((root, batch.signature.to_vec()));
        }
        holds
    }
}

/// What is signed of a root.
pub(crate) fn signed_root(root: &Node) -> [u8; SIGNED.len() + DIGEST] {
    let mut all = [0; SIGNED.len() + DIGEST];
    let (what, which) = all.split_at_mut(SIGNED.len());
    what.copy_from_slice(SIGNED);
    which.copy_from_slice(root);
    all
}

/// The node above two.
pub(crate) fn joined(left: &Node, right: &Node) -> Node {
    let mut all = [1; 1 + 2 * DIGEST];
    all[1..=DIGEST].copy_from_slice(left);
    all[1 + DIGEST..].copy_from_slice(right);
    crate::sha256(&all)
}

/// A digest that is complete.
pub(crate) fn node(digest: Context) -> Node {
    let mut out = [0; DIGEST];
    out.copy_from_slice(digest.finish().as_ref());
    out
}

/// How many digests lead from a packet to the root of a batch of `count`.
pub(crate) fn depth(count: usize) -> usize {
    count.max(1).next_power_of_two().trailing_zeros() as usize
}

/// Most packets that a batch may have.
pub(crate) const MAX_PACKETS: usize = 1 << MAX_DEPTH;

/// Bytes of the element's parts, and of all that follows the content of a packet in a batch.
pub(crate) struct Lens {
    pub batch: usize,
    pub info: usize,
    pub tail: usize,
}

impl Lens {
    pub fn new(
        signature_type: u64,
        locator: Option<&KeyLocatorRef<'_>>,
        place: u64,
        depth: usize,
        signature: usize,
    ) -> Self {
        let batch = tlv::nonneg_tlv_len(types::SIGNATURE_TYPE, signature_type)
            + locator.map_or(0, |l| l.wire_len())
            + tlv::nonneg_tlv_len(types::BATCH_PLACE, place)
            + tlv::tlv_len(types::BATCH_PATH, depth * DIGEST)
            + tlv::tlv_len(types::SIGNATURE_VALUE, signature);
        let info = tlv::nonneg_tlv_len(types::SIGNATURE_TYPE, signature_type::DIGEST_SHA256)
            + tlv::tlv_len(types::BATCH_SIGNATURE, batch);
        Self {
            batch,
            info,
            tail: tlv::tlv_len(types::SIGNATURE_INFO, info)
                + tlv::tlv_len(types::SIGNATURE_VALUE, DIGEST),
        }
    }
}
