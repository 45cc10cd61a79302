//! Arrays of Java, read and written.

use jni::Env;
use jni::objects::{JByteArray, JLongArray};

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

pub(super) fn signed(bytes: &[u8]) -> &[i8] {
    // SAFETY: i8 and u8 have one size, one alignment and no invalid values.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

pub(super) fn signed_mut(bytes: &mut [u8]) -> &mut [i8] {
    // SAFETY: as above; the borrow of `bytes` is exclusive and lives as long.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}
