//! The source of finalized replicas.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jni::EnvUnowned;
use jni::objects::{JClass, JString};
use jni::sys::{jint, jlong};

use super::{OBJECTS, Object, call, keep, name, node, not_negative, text};
use crate::blocks::{Answer, BlockSource};
use crate::error::NativeError;

fn source(handle: i64) -> Result<Arc<BlockSource>, NativeError> {
    match OBJECTS.get(handle) {
        Some(Object::Blocks(_, source)) => Ok(source),
        _ => Err(NativeError::NotOpen {
            what: "block source",
            handle,
        }),
    }
}

/// `long blockSourceOpen(long node, String blocksPrefix, int segmentBytes, int maxOpenFiles)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockSourceOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    prefix: JString<'local>,
    segment_bytes: jint,
    max_open_files: jint,
) -> jlong {
    call(env, |env| {
        let segment_bytes = not_negative("segment bytes", segment_bytes.into())? as u32;
        let max_open = not_negative("open files", max_open_files.into())? as usize;
        let prefix = name(env, &prefix)?;
        let node = node(handle)?;
        let source = node.open_blocks(&prefix, segment_bytes, max_open)?;
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
        };
        source.answer(&request, Some(answer));
        Ok(())
    })
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
