//! Where in Java the content of a segment goes.

use std::ops::Range;

use jni::Env;
use jni::objects::JByteArray;
use jni::sys::jint;

use super::Failure;
use super::arrays::{Part, signed, signed_mut};
use crate::segment::HEADER_LEN;

/// The content of a segment, piece by piece: the header is here, the body in parts
/// of a Java array, one after the other.
pub(super) struct Places<'a, 'local, const N: usize> {
    pub(super) header: [u8; HEADER_LEN],
    array: &'a JByteArray<'local>,
    parts: [Part; N],
}

impl<'a, 'local, const N: usize> Places<'a, 'local, N> {
    /// Parts that the array holds.
    pub(super) fn new(array: &'a JByteArray<'local>, parts: [Part; N]) -> Self {
        Places {
            header: [0; HEADER_LEN],
            array,
            parts,
        }
    }

    /// Puts the piece that begins at `at` in the content. What lies after the
    /// last part is let fall; whoever asks compares lengths in the end.
    pub(super) fn put(&mut self, env: &Env<'_>, at: usize, piece: &[u8]) -> Result<(), Failure> {
        if let Some(header) = self.header.get_mut(at..) {
            let here = header.len().min(piece.len());
            header[..here].copy_from_slice(&piece[..here]);
        }
        for (index, here) in self.of(at, piece.len()) {
            self.array.set_region(env, index, signed(&piece[here]))?;
        }
        Ok(())
    }

    /// Gets the piece that begins at `at` in the content, which has all of it.
    pub(super) fn get(&self, env: &Env<'_>, at: usize, piece: &mut [u8]) -> Result<(), Failure> {
        if let Some(header) = self.header.get(at..) {
            let here = header.len().min(piece.len());
            piece[..here].copy_from_slice(&header[..here]);
        }
        for (index, here) in self.of(at, piece.len()) {
            self.array
                .get_region(env, index, signed_mut(&mut piece[here]))?;
        }
        Ok(())
    }

    /// Where in the array those bytes of the piece at `at` are that the parts hold.
    fn of(&self, at: usize, len: usize) -> impl Iterator<Item = (jint, Range<usize>)> {
        let mut begins = HEADER_LEN;
        self.parts.iter().filter_map(move |part| {
            let start = begins;
            begins += part.len;
            let (from, to) = (at.max(start), (at + len).min(begins));
            (from < to).then(|| (part.at + (from - start) as jint, from - at..to - at))
        })
    }
}
