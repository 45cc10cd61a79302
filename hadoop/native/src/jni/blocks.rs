//! The source of finalized replicas.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jni::objects::{JByteArray, JClass, JString};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};
use zeroize::Zeroizing;

use super::arrays::bytes;
use super::stream::key_bytes;
use super::{Failure, OBJECTS, Object, call, keep, name, node, not_negative, text};
use crate::blocks::{Answer, BlockSource, SealedByWrite, Secrets, Written};
use crate::content_key::Secret;
use crate::error::NativeError;
use crate::seal::WriteKey;

fn source(handle: i64) -> Result<Arc<BlockSource>, NativeError> {
    match OBJECTS.get(handle) {
        Some(Object::Blocks(_, source)) => Ok(source),
        _ => Err(NativeError::NotOpen {
            what: "block source",
            handle,
        }),
    }
}

/// `long blockSourceOpen(long node, String blocksPrefix, int segmentBytes, int maxOpenFiles, boolean
/// guarded)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockSourceOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    prefix: JString<'local>,
    segment_bytes: jint,
    max_open_files: jint,
    guarded: jboolean,
) -> jlong {
    call(env, |env| {
        let segment_bytes = not_negative("segment bytes", segment_bytes.into())? as u32;
        let max_open = not_negative("open files", max_open_files.into())? as usize;
        let prefix = name(env, &prefix)?;
        let node = node(handle)?;
        let source = if guarded {
            node.open_guarded_blocks(&prefix, segment_bytes, max_open)?
        } else {
            node.open_blocks(&prefix, segment_bytes, max_open)?
        };
        keep(Object::Blocks(node.number(), source))
    })
}

/// `String blockSourceNext(long source, int timeoutMs)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockSourceNext<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    timeout_ms: jint,
) -> JString<'local> {
    call(env, |env| {
        let timeout = Duration::from_millis(not_negative("time-out", timeout_ms.into())?);
        match source(handle)?.next_request(timeout)? {
            Some(request) => Ok(JString::from_str(env, request)?),
            None => Ok(JString::default()),
        }
    })
}

/// `void blockSourceAnswer(long source, String request, String blockPath, String metaPath, long length, long genstamp)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockSourceAnswer<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    request: JString<'local>,
    block_path: JString<'local>,
    meta_path: JString<'local>,
    length: jlong,
    genstamp: jlong,
) {
    call(env, |env| {
        let Ok(source) = source(handle) else {
            return Ok(());
        };
        let request = text(env, "request", &request)?;
        if block_path.is_null() || meta_path.is_null() || length < 0 || genstamp < 0 {
            source.answer(&request, None);
            return Ok(());
        }
        let block = text(env, "block path", &block_path)?;
        let meta = text(env, "checksum path", &meta_path)?;
        let answer = Answer {
            block: Path::new(&block),
            meta: Path::new(&meta),
            length: length as u64,
            genstamp: genstamp as u64,
            secrets: Secrets::default(),
        };
        source.answer(&request, Some(answer));
        Ok(())
    })
}

/// `void blockSourceAnswerGuarded(long source, String request, String blockPath, String metaPath,
/// long length, long genstamp, byte[] writeKey, int writeSegmentBytes, long writeSegments, byte[]
/// writeDigest, int serial, byte[] secret, byte[] password)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockSourceAnswerGuarded<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    request: JString<'local>,
    block_path: JString<'local>,
    meta_path: JString<'local>,
    length: jlong,
    genstamp: jlong,
    write_key: JByteArray<'local>,
    write_segment_bytes: jint,
    write_segments: jlong,
    write_digest: JByteArray<'local>,
    serial: jint,
    secret: JByteArray<'local>,
    password: JByteArray<'local>,
) {
    call(env, |env| {
        let Ok(source) = source(handle) else {
            return Ok(());
        };
        let request = text(env, "request", &request)?;
        let block = text(env, "block path", &block_path)?;
        let meta = text(env, "checksum path", &meta_path)?;
        let sealed = (write_segments, &write_digest);
        let key = written(env, &write_key, write_segment_bytes, sealed)?;
        let block_key = Secret::new(&Zeroizing::new(bytes(env, "secret", &secret)?));
        let password = Secret::new(&Zeroizing::new(bytes(env, "password", &password)?));
        let answer = Answer {
            block: Path::new(&block),
            meta: Path::new(&meta),
            length: not_negative("length", length)?,
            genstamp: not_negative("genstamp", genstamp)?,
            secrets: Secrets {
                written: key.as_ref().map(|(key, segment_bytes, sealed)| Written {
                    key,
                    segment_bytes: *segment_bytes,
                    sealed: *sealed,
                }),
                // A serial number is 32 bits, which Java shows with a sign.
                block_key: block_key.as_ref().map(|secret| (serial as u32, secret)),
                password: password.as_ref(),
            },
        };
        source.answer(&request, Some(answer));
        Ok(())
    })
}

/// The key of a write, its segments' data bytes and what it has sealed; `None`
/// without a key.
fn written(
    env: &Env<'_>,
    key: &JByteArray<'_>,
    segment_bytes: jint,
    (segments, digest): (jlong, &JByteArray<'_>),
) -> Result<Option<(WriteKey, u32, SealedByWrite)>, Failure> {
    if key.is_null() {
        return Ok(None);
    }
    let segment_bytes = not_negative("segment bytes", segment_bytes.into())? as u32;
    let digest = <[u8; 32]>::try_from(bytes(env, "digest", digest)?)
        .map_err(|_| NativeError::Argument("digest is not 32 bytes long".into()))?;
    Ok(Some((
        WriteKey::new(&*key_bytes(env, key)?),
        segment_bytes,
        SealedByWrite {
            segments: not_negative("segments", segments)?,
            digest,
        },
    )))
}

/// `void blockSourceInvalidate(long source, String pool, long block)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockSourceInvalidate<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    pool: JString<'local>,
    block: jlong,
) {
    call(env, |env| {
        if let Ok(source) = source(handle) {
            source.invalidate(&text(env, "pool", &pool)?, block);
        }
        Ok(())
    })
}

/// `void blockSourceClose(long source)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockSourceClose<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    call(env, |_| {
        if let Ok(source) = source(handle) {
            OBJECTS.remove(handle);
            source.close();
        }
        Ok(())
    })
}
