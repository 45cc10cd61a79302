//! Digests over bytes that come as pieces: so do signed portions, because an Interest's is not contiguous.

use ring::{digest, hmac};
use std::borrow::Cow;

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    sha256_pieces(&[bytes])
}

/// SHA-256 of the pieces, one after the other.
pub(crate) fn sha256_pieces(pieces: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for piece in pieces {
        context.update(piece);
    }
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    out
}

pub(crate) fn hmac_pieces(key: &hmac::Key, pieces: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    for piece in pieces {
        context.update(piece);
    }
    context.sign()
}

pub(crate) fn joined<'a>(pieces: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match pieces {
        [one] => Cow::Borrowed(one),
        many => Cow::Owned(many.concat()),
    }
}
