//! Sealed segments: what a write publishes in a cluster with block tokens can
//! be read, and made, by those alone who were given the write's key.
//!
//! The writer draws a key for each write, and it is passed down the pipeline on
//! secure control connections. Content is sealed with AEGIS-128X2
//! (draft-irtf-cfrg-aegis-aead), in pieces ([`pieces`]): a segment opens in no
//! place but its own. A number is sealed once under a key; [`Sealer`] sees to
//! that.
//!
//! Of the variants of AEGIS-128 that of two lanes is quick everywhere: copies
//! included it takes 0.07 ns a byte where a processor has VAES, with AVX-512 or
//! without, and 0.16 by AES-NI alone; one lane takes 0.11 on all of them, four
//! take 0.06, 0.11 and 0.21.

mod pieces;

use std::fmt;

pub(crate) use pieces::{Forged, from};
pub use pieces::{Opener, Sealer, sealed_len};
use ring::hkdf;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{NativeError, Result};

/// Length of a write's key in bytes.
pub const WRITE_KEY_LEN: usize = 16;
/// Length of a key's id in bytes.
pub const KEY_ID_LEN: usize = 8;
/// What makes a piece longer when it is sealed, in bytes: its tag.
pub const TAG_LEN: usize = 16;

/// The key of one write. It has no text form, so that no log has it, and is wiped
/// when it is let go of.
#[derive(Clone, PartialEq, Eq)]
pub struct WriteKey([u8; WRITE_KEY_LEN]);

impl Drop for WriteKey {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl ZeroizeOnDrop for WriteKey {}

impl fmt::Debug for WriteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteKey")
    }
}

/// Which of a write's two streams; each has all segment numbers for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum StreamKind {
    /// Segments of the block.
    Block = 0,
    /// What the block's segments do not hold.
    Stream = 1,
}

impl StreamKind {
    /// The kind of that number.
    pub fn from_number(number: i32) -> Option<Self> {
        match number {
            0 => Some(StreamKind::Block),
            1 => Some(StreamKind::Stream),
            _ => None,
        }
    }
}

/// So many bytes of HKDF.
pub(crate) struct Length(pub(crate) usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl WriteKey {
    /// A key that nobody has had before.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn draw() -> Result<Self> {
        let mut key = WriteKey([0; WRITE_KEY_LEN]);
        SystemRandom::new()
            .fill(&mut key.0)
            .map_err(|_| NativeError::Failed("the system gives no random numbers".into()))?;
        Ok(key)
    }

    /// The key that came down the pipeline.
    pub fn new(bytes: &[u8; WRITE_KEY_LEN]) -> Self {
        WriteKey(*bytes)
    }

    /// Its bytes, for the secure connection.
    pub fn bytes(&self) -> &[u8; WRITE_KEY_LEN] {
        &self.0
    }

    /// What letting go of it does.
    fn wipe(&mut self) {
        self.0.zeroize();
    }

    fn derive<const N: usize>(&self, label: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        hkdf::Salt::new(hkdf::HKDF_SHA256, &[])
            .extract(&self.0)
            .expand(&[label], Length(N))
            .and_then(|okm| okm.fill(&mut out))
            .expect("a few bytes are no more than HKDF gives");
        out
    }

    /// What names tell the key by; says nothing of it.
    pub fn id(&self) -> [u8; KEY_ID_LEN] {
        self.derive(b"trunkline write, key id 3")
    }

    /// What opens segments of one of the write's streams.
    pub fn opener(&self, kind: StreamKind) -> Opener {
        let key = Zeroizing::new(self.derive(b"trunkline write, segment key 3"));
        Opener::new(key, kind)
    }

    /// What seals segments of one of the write's streams. There is to be one of each kind.
    pub fn sealer(&self, kind: StreamKind) -> Sealer {
        Sealer::new(self.opener(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ids() {
        let key = WriteKey::new(&[7; WRITE_KEY_LEN]);
        assert_eq!(key.id(), WriteKey::new(key.bytes()).id());
        let drawn = WriteKey::draw().unwrap();
        assert_ne!(drawn.bytes(), WriteKey::draw().unwrap().bytes());
        assert_ne!(drawn.id(), key.id());
        assert_eq!(format!("{key:?}"), "WriteKey");
    }

    #[test]
    fn a_key_is_wiped_when_it_is_let_go_of() {
        fn wiped<T: ZeroizeOnDrop>(_: &T) {}
        let mut key = WriteKey::draw().unwrap();
        wiped(&key);
        key.wipe();
        assert_eq!(key.bytes(), &[0; WRITE_KEY_LEN]);
    }
}
