//! Arrays of Java, read and written.

use jni::Env;
use jni::objects::{JByteArray, JLongArray};
use jni::sys::jint;

use super::Failure;
use crate::error::NativeError;

/// Longest secret, prologue or handshake message that is taken, in bytes.
const MAX_INPUT: usize = 64 * 1024;

/// A whole array, none for a null one.
pub(super) fn bytes(env: &Env<'_>, what: &str, array: &JByteArray<'_>) -> Result<Vec<u8>, Failure> {
    let len = if array.is_null() { 0 } else { array.len(env)? };
    if len > MAX_INPUT {
        return Err(NativeError::Argument(format!("{what} of {len} bytes")).into());
    }
    let mut bytes = vec![0; len];
    if len > 0 {
        array.get_region(env, 0, signed_mut(&mut bytes))?;
    }
    Ok(bytes)
}

/// An array of these numbers.
pub(super) fn longs<'local>(
    env: &mut Env<'local>,
    numbers: &[i64],
) -> Result<JLongArray<'local>, Failure> {
    let array = JLongArray::new(env, numbers.len())?;
    array.set_region(env, 0, numbers)?;
    Ok(array)
}

/// A range of a Java array.
pub(super) struct Part {
    pub(super) at: jint,
    pub(super) len: usize,
}

/// The range, if the array holds it.
pub(super) fn part(
    env: &Env<'_>,
    body: &JByteArray<'_>,
    at: jint,
    len: jint,
) -> Result<Part, Failure> {
    let inside = |have: usize| at >= 0 && len >= 0 && at as usize + len as usize <= have;
    if body.is_null() || !inside(body.len(env)?) {
        let text = format!("body array is null or does not hold {len} bytes at {at}");
        return Err(NativeError::Argument(text).into());
    }
    Ok(Part {
        at,
        len: len as usize,
    })
}

pub(super) fn signed(bytes: &[u8]) -> &[i8] {
    // SAFETY: i8 and u8 have one size, one alignment and no invalid values.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

pub(super) fn signed_mut(bytes: &mut [u8]) -> &mut [i8] {
    // SAFETY: as above; the borrow of `bytes` is exclusive and lives as long.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}
