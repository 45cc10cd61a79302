//! What makes a packet's signature, wherever its key is.

use crate::KeyLocatorRef;
use bytes::BufMut;

/// What signs packets: [`SigningKey`](crate::SigningKey), or a key kept elsewhere.
pub trait Signer {
    /// SignatureType number.
    fn signature_type(&self) -> u64;
    /// KeyLocator to put into the packet.
    fn key_locator(&self) -> Option<KeyLocatorRef<'_>>;
    /// Greatest number of bytes that [`Signer::sign`] writes.
    fn max_signature_len(&self) -> usize;
    /// Writes the signature over the pieces of the signed portion, one after the other.
    fn sign(&self, pieces: &[&[u8]], signature: &mut dyn BufMut);
}
