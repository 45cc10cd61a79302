//! Where in Java the content of a segment goes.

use jni::Env;
use jni::objects::JByteArray;

use super::Failure;
use super::arrays::{Part, signed};
use crate::segment::HEADER_LEN;

/// Takes the content of a segment, piece by piece: the header stays here until
/// all has come, the body goes into parts of a Java array, one after the other.
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
        let mut begins = HEADER_LEN;
        for part in &self.parts {
            let from = at.max(begins);
            let to = (at + piece.len()).min(begins + part.len);
            if from < to {
                let here = signed(&piece[from - at..to - at]);
                let index = part.at + (from - begins) as i32;
                self.array.set_region(env, index, here)?;
            }
            begins += part.len;
        }
        Ok(())
    }
}
