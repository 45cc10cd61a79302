//! Making packets that have one signature among them; what it is like is told beside [`crate::BatchSignature`].

use bytes::Bytes;
use ring::digest::{Context, SHA256};

use crate::batch::{self, DIGEST, Lens, MAX_PACKETS, Node, joined, node, signed_root};
use crate::data_builder::{Begun, DataWriter, in_place};
use crate::tlv::{self, types};
use crate::{Signer, signature_type};

/// Packets in the making, which get one signature together.
///
/// ```
/// use ndn_packet::{Batch, Data, Name, SigningKey, Verifier};
/// let key = SigningKey::ed25519_from_pkcs8(&SigningKey::generate_ed25519()?)?;
/// let object: Name = "/a/v=1".parse()?;
/// let mut batch = Batch::new(&key, 3);
/// for n in 0..3 {
///     let fill = |content: &mut [u8]| Ok::<(), std::io::Error>(content.fill(n as u8));
///     Data::builder(&object.append_segment(n)).content_with(100, fill).join(&mut batch)?;
/// }
/// for wire in batch.sign() {
///     let data = Data::parse(wire)?;
///     assert!(data.verify_digest() && key.verifier().verify(&data));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batch<'a, S: Signer + ?Sized> {
    signer: &'a S,
    count: usize,
    packets: Vec<Member>,
}

/// A packet up to its content.
struct Member {
    begun: Begun,
    /// Over that.
    digest: Context,
}

impl<'a, S: Signer + ?Sized> Batch<'a, S> {
    /// An empty batch, for `count` packets that `signer`'s key signs; keys alone do, as a digest of digests says nothing
    /// of who made them.
    ///
    /// # Panics
    /// With more than 65536 packets.
    pub fn new(signer: &'a S, count: usize) -> Self {
        assert!(count <= MAX_PACKETS, "batch of {count} packets");
        Self {
            signer,
            count,
            packets: Vec::with_capacity(count),
        }
    }

    /// Bytes that follow the content of a packet in a batch of `count`, at most.
    pub fn tail_len(signer: &S, count: usize) -> usize {
        let last = (count as u64).saturating_sub(1);
        let (kind, signature) = (signer.signature_type(), signer.max_signature_len());
        let locator = signer.key_locator();
        Lens::new(kind, locator.as_ref(), last, batch::depth(count), signature).tail
    }

    /// Takes the packet that `begin` makes, given how many bytes follow its content at most.
    ///
    /// # Panics
    /// With more packets than were announced.
    pub(crate) fn push<E>(
        &mut self,
        begin: impl FnOnce(usize) -> Result<Begun, E>,
    ) -> Result<(), E> {
        assert!(self.packets.len() < self.count, "the batch is full");
        let begun = begin(Self::tail_len(self.signer, self.count))?;
        let mut digest = Context::new(&SHA256);
        digest.update(&begun.buf[begun.room..]);
        self.packets.push(Member { begun, digest });
        Ok(())
    }

    /// The packets, in the order in which they joined, signed.
    pub fn sign(self) -> Vec<Bytes> {
        let leaves = self.packets.iter().map(|p| node(p.digest.clone()));
        let levels = levels(leaves.collect());
        let (root, below) = levels.split_last().expect("a tree has a root");
        let mut room = [0; 252];
        let mut space = &mut room[..];
        self.signer.sign(&[&signed_root(&root[0])], &mut space);
        let unused = space.len();
        let signature = &room[..252 - unused];
        let locator = self.signer.key_locator();
        let kind = self.signer.signature_type();
        let end = |(place, Member { mut begun, digest }): (usize, Member)| {
            let number = place as u64;
            let lens = Lens::new(kind, locator.as_ref(), number, below.len(), signature.len());
            let buf = &mut begun.buf;
            let from = buf.len();
            tlv::write_header(buf, types::SIGNATURE_INFO, lens.info);
            tlv::write_nonneg_tlv(buf, types::SIGNATURE_TYPE, signature_type::DIGEST_SHA256);
            tlv::write_header(buf, types::BATCH_SIGNATURE, lens.batch);
            tlv::write_nonneg_tlv(buf, types::SIGNATURE_TYPE, kind);
            if let Some(locator) = &locator {
                locator.encode(buf);
            }
            tlv::write_nonneg_tlv(buf, types::BATCH_PLACE, number);
            tlv::write_header(buf, types::BATCH_PATH, below.len() * DIGEST);
            for (height, nodes) in below.iter().enumerate() {
                buf.extend_from_slice(&nodes[(place >> height) ^ 1]);
            }
            tlv::write_tlv(buf, types::SIGNATURE_VALUE, signature);
            let mut digest = digest;
            digest.update(&buf[from..]);
            tlv::write_tlv(buf, types::SIGNATURE_VALUE, &node(digest));
            begun.end()
        };
        self.packets.into_iter().enumerate().map(end).collect()
    }
}

impl<E, F> DataWriter<'_, F>
where
    F: FnOnce(&mut [u8]) -> Result<(), E>,
{
    /// Puts the packet into a batch, behind those that are in it.
    ///
    /// # Errors
    /// What the writer of the content returned; the batch is as it was.
    pub fn join<S: Signer + ?Sized>(self, batch: &mut Batch<'_, S>) -> Result<(), E> {
        let (len, fill) = (self.len, self.fill);
        batch.push(|tail| self.builder.begin(len, tail, in_place(len, fill)))
    }
}

/// All nodes of the tree over `leaves`, filled up with zeros, level by level up to the root.
fn levels(mut leaves: Vec<Node>) -> Vec<Vec<Node>> {
    leaves.resize(1 << batch::depth(leaves.len()), [0; DIGEST]);
    let mut levels = vec![leaves];
    while let Some(below) = levels.last()
        && below.len() > 1
    {
        let (pairs, _) = below.as_chunks::<2>();
        let above = pairs.iter().map(|[left, right]| joined(left, right));
        levels.push(above.collect());
    }
    levels
}
