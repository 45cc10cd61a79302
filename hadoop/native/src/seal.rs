//! Sealed segments: what a write publishes in a cluster with block tokens can
//! be read, and made, by those alone who were given the write's key.
//!
//! The writer draws a key for each write, and it is passed down the pipeline on
//! secure control connections. Content is sealed with AES-128-GCM. The nonce is
//! the kind of stream and the segment's number, the associated data the
//! segment's name: a segment opens in no place but its own. A number is sealed
//! once under a key; [`Sealer`] sees to that.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{NativeError, Result};

/// Length of a write's key in bytes.
pub const WRITE_KEY_LEN: usize = 16;
/// Length of a key's id in bytes.
pub const KEY_ID_LEN: usize = 8;
/// What a sealed segment is longer than an open one, in bytes.
pub const SEAL_LEN: usize = 16;

/// The key of one write. It has no text form, so that no log has it, and is wiped
/// when it is let go of. What ring makes of it stays in ring's hands.
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
        self.derive(b"trunkline write, key id 1")
    }

    /// What opens segments of one of the write's streams.
    pub fn opener(&self, kind: StreamKind) -> Opener {
        let key = Zeroizing::new(self.derive::<16>(b"trunkline write, segment key 1"));
        let key = UnboundKey::new(&AES_128_GCM, &*key).expect("16 bytes are a key of AES-128");
        Opener {
            key: LessSafeKey::new(key),
            kind,
        }
    }

    /// What seals segments of one of the write's streams. There is to be one of each kind.
    pub fn sealer(&self, kind: StreamKind) -> Sealer {
        Sealer {
            opener: self.opener(kind),
            next: Mutex::new(0),
        }
    }
}

/// Opens the segments of one stream; for replicas, which hold one content for
/// ever, it seals them as well.
pub struct Opener {
    key: LessSafeKey,
    kind: StreamKind,
}

impl Opener {
    fn nonce(&self, segment: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&(self.kind as u32).to_be_bytes());
        nonce[4..].copy_from_slice(&segment.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    /// Opens segment `segment`, whose whole name is `name` (the value of its TLV),
    /// in place: the content; `None` when it was not sealed for this place. Packets
    /// are shared with caches and other readers, so `sealed` is a copy.
    pub fn open<'a>(&self, name: &[u8], segment: u64, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        self.key
            .open_in_place(self.nonce(segment), Aad::from(name), sealed)
            .ok()
            .map(|content| &*content)
    }

    /// Seals the content of a segment in place: all of `content` but its last
    /// [`SEAL_LEN`] bytes. Whoever calls sees to it that a number has one content
    /// and no other under this key: two would give both away, and what forged
    /// ones are told by.
    ///
    /// # Errors
    /// When there is no room for the seal, or too much to be sealed.
    pub(crate) fn seal(&self, name: &[u8], segment: u64, content: &mut [u8]) -> Result<()> {
        let Some(at) = content.len().checked_sub(SEAL_LEN) else {
            return Err(NativeError::Argument("no room for the seal".into()));
        };
        let (plain, seal) = content.split_at_mut(at);
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(segment), Aad::from(name), plain)
            .map_err(|_| NativeError::Argument("segment too long to be sealed".into()))?;
        seal.copy_from_slice(tag.as_ref());
        Ok(())
    }
}

/// Seals the segments of one stream, in rising order.
pub struct Sealer {
    opener: Opener,
    /// The least number that was not used.
    next: Mutex<u64>,
}

impl Sealer {
    /// Seals the content of a segment in place: all of `content` but its last
    /// [`SEAL_LEN`] bytes. The number is used up by that.
    ///
    /// # Errors
    /// When this number, or a later one, was used before. Two contents under one
    /// nonce would give both away, and what forged ones are told by.
    pub fn seal(&self, name: &[u8], segment: u64, content: &mut [u8]) -> Result<()> {
        if content.len() < SEAL_LEN {
            return Err(NativeError::Argument("no room for the seal".into()));
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if segment < *next || segment == u64::MAX {
            return Err(NativeError::Failed(format!(
                "segment {segment} cannot be sealed: numbers rise, and none is used twice"
            )));
        }
        *next = segment + 1;
        drop(next);
        self.opener.seal(name, segment, content)
    }

    /// What opens them again.
    pub fn opener(&self) -> &Opener {
        &self.opener
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(sealer: &Sealer, name: &[u8], segment: u64, plain: &[u8]) -> Vec<u8> {
        let mut content = plain.to_vec();
        content.extend([0; SEAL_LEN]);
        sealer.seal(name, segment, &mut content).unwrap();
        content
    }

    /// What opens; of a copy, as with packets.
    fn opened(opener: &Opener, name: &[u8], segment: u64, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut copy = sealed.to_vec();
        opener.open(name, segment, &mut copy).map(<[u8]>::to_vec)
    }

    #[test]
    fn only_the_same_key_kind_name_and_number_open() {
        let key = WriteKey::draw().unwrap();
        let content = sealed(
            &key.sealer(StreamKind::Block),
            b"/a/seg=7",
            7,
            b"twelve bytes",
        );
        let opener = key.opener(StreamKind::Block);
        let open = |name, number, content| opened(&opener, name, number, content);
        assert_eq!(open(b"/a/seg=7", 7, &content).unwrap(), b"twelve bytes");
        assert!(!content.windows(12).any(|w| w == b"twelve bytes"));
        assert_eq!(open(b"/a/seg=7", 8, &content), None, "another number");
        assert_eq!(open(b"/b/seg=7", 7, &content), None, "another name");
        let stream = key.opener(StreamKind::Stream);
        assert_eq!(
            opened(&stream, b"/a/seg=7", 7, &content),
            None,
            "another stream"
        );
        let other = WriteKey::draw().unwrap().opener(StreamKind::Block);
        assert_eq!(
            opened(&other, b"/a/seg=7", 7, &content),
            None,
            "another key"
        );
        assert_eq!(open(b"/a/seg=7", 7, &content[..SEAL_LEN - 1]), None);
        assert_eq!(open(b"/a/seg=7", 7, b""), None);
    }

    #[test]
    fn a_number_is_sealed_once() {
        let sealer = WriteKey::draw().unwrap().sealer(StreamKind::Block);
        sealed(&sealer, b"n", 0, b"first");
        sealed(&sealer, b"n", 5, b"later");
        for again in [0, 3, 5] {
            let mut content = vec![1; 40];
            assert!(sealer.seal(b"n", again, &mut content).is_err(), "{again}");
            assert_eq!(content, [1; 40], "nothing is sealed");
        }
        sealed(&sealer, b"n", 6, b"next");
        assert!(sealer.seal(b"n", u64::MAX, &mut [0; 40]).is_err());
        assert!(sealer.seal(b"n", 7, &mut [0; SEAL_LEN - 1]).is_err());
    }

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

    proptest! {
        #[test]
        fn any_change_is_seen(plain in proptest::collection::vec(any::<u8>(), 0..3000), segment in 0..u64::MAX, at: usize, bit in 0..8u8) {
            let key = WriteKey::draw().unwrap();
            let mut content = sealed(&key.sealer(StreamKind::Stream), b"name", segment, &plain);
            let opener = key.opener(StreamKind::Stream);
            let open = |content: &[u8]| opened(&opener, b"name", segment, content);
            prop_assert_eq!(&open(&content).unwrap()[..], &plain[..]);
            let at = at % content.len();
            content[at] ^= 1 << bit;
            prop_assert_eq!(open(&content), None);
            content[at] ^= 1 << bit;
            prop_assert_eq!(open(&content[..at]), None);
        }
    }
}
