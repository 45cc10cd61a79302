//! Producers and pulls of segments.

use std::time::Duration;

use jni::objects::{JByteArray, JClass, JString};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};

use super::{Failure, OBJECTS, Object, call, keep, name, node, not_negative};
use crate::error::NativeError;
use crate::pull::PullSettings;
use crate::segment::{HEADER_LEN, SegmentHeader};

/// `long producerOpen(long node, String prefix, int retainSegments)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_producerOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    prefix: JString<'local>,
    retain_segments: jint,
) -> jlong {
    call(env, |env| {
        let retain = at_least_one("segments to retain", retain_segments)?;
        let prefix = name(env, &prefix)?;
        let node = node(handle)?;
        keep(Object::Producer(
            node.number(),
            node.open_producer(&prefix, retain)?,
        ))
    })
}

/// `void producerPublish(long producer, long segment, byte[] header, byte[] body, int off, int len)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_producerPublish<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    segment: jlong,
    header: JByteArray<'local>,
    body: JByteArray<'local>,
    off: jint,
    len: jint,
) {
    call(env, |env| {
        let Some(Object::Producer(_, producer)) = OBJECTS.get(handle) else {
            return Err(NativeError::NotOpen {
                what: "producer",
                handle,
            }
            .into());
        };
        let segment = not_negative("segment", segment)?;
        check_header(env, &header)?;
        check_body(env, &body, off, len)?;
        let mut head = [0; HEADER_LEN];
        header.get_region(env, 0, signed_mut(&mut head))?;
        let checksum = SegmentHeader::decode(&head)
            .map_err(|e| NativeError::Argument(e.to_string()))?
            .checksum;
        producer.publish(segment, HEADER_LEN + len as usize, checksum, |content| {
            let (first, rest) = content.split_at_mut(HEADER_LEN);
            first.copy_from_slice(&head);
            body.get_region(env, off, signed_mut(rest))?;
            Ok::<(), Failure>(())
        })
    })
}

/// `void producerClose(long producer, long lingerMs)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_producerClose<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    linger_ms: jlong,
) {
    call(env, |_| {
        if let Some(Object::Producer(_, producer)) = OBJECTS.get(handle) {
            OBJECTS.remove(handle);
            producer.close(Duration::from_millis(linger_ms.max(0) as u64));
        }
        Ok(())
    })
}

/// `long pullOpen(long node, String prefix, long firstSegment, int window, boolean live, long last)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_pullOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    prefix: JString<'local>,
    first_segment: jlong,
    window: jint,
    live: jboolean,
    last: jlong,
) -> jlong {
    call(env, |env| {
        let settings = PullSettings {
            first: not_negative("first segment", first_segment)?,
            last: u64::try_from(last).ok(),
            window: at_least_one("window", window)?,
            live,
        };
        let prefix = name(env, &prefix)?;
        let node = node(handle)?;
        keep(Object::Pull(
            node.number(),
            node.open_pull(&prefix, settings)?,
        ))
    })
}

/// `void pullKnown(long pull, long upto)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_pullKnown<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    upto: jlong,
) {
    call(env, |_| {
        if let (Some(Object::Pull(_, pull)), Ok(upto)) = (OBJECTS.get(handle), u64::try_from(upto))
        {
            pull.known(upto);
        }
        Ok(())
    })
}

/// `int pullTake(long pull, long segment, byte[] header, byte[] dst, int off, int max, int timeoutMs)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_pullTake<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    segment: jlong,
    header: JByteArray<'local>,
    dst: JByteArray<'local>,
    off: jint,
    max: jint,
    timeout_ms: jint,
) -> jint {
    call(env, |env| {
        let Some(Object::Pull(_, pull)) = OBJECTS.get(handle) else {
            return Err(NativeError::NotOpen {
                what: "pull",
                handle,
            }
            .into());
        };
        let segment = not_negative("segment", segment)?;
        let timeout = Duration::from_millis(not_negative("time-out", timeout_ms.into())?);
        check_header(env, &header)?;
        check_body(env, &dst, off, max)?;
        let Some(content) = pull.take(segment, timeout)? else {
            return Ok(-1);
        };
        let (head, body) = content.split_at_checked(HEADER_LEN).ok_or_else(|| {
            let len = content.len();
            NativeError::Failed(format!(
                "segment {segment} has {len} bytes, its header alone has 24"
            ))
        })?;
        if body.len() > max as usize {
            let len = body.len();
            let text = format!("segment {segment} has a body of {len} bytes, {max} were expected");
            return Err(NativeError::Failed(text).into());
        }
        header.set_region(env, 0, signed(head))?;
        dst.set_region(env, off, signed(body))?;
        Ok(body.len() as jint)
    })
}

/// `void pullClose(long pull)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_pullClose<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    call(env, |_| {
        if let Some(Object::Pull(_, pull)) = OBJECTS.get(handle) {
            OBJECTS.remove(handle);
            pull.close();
        }
        Ok(())
    })
}

fn at_least_one(what: &str, value: jint) -> Result<usize, NativeError> {
    match usize::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(NativeError::Argument(format!("{what} is {value}, below 1"))),
    }
}

fn check_header(env: &Env<'_>, header: &JByteArray<'_>) -> Result<(), Failure> {
    if header.is_null() || header.len(env)? < HEADER_LEN {
        return Err(NativeError::Argument("header array is null or below 24 bytes".into()).into());
    }
    Ok(())
}

fn check_body(env: &Env<'_>, body: &JByteArray<'_>, off: jint, len: jint) -> Result<(), Failure> {
    let inside = |have: usize| off >= 0 && len >= 0 && off as usize + len as usize <= have;
    if body.is_null() || !inside(body.len(env)?) {
        let text = format!("body array is null or does not hold {len} bytes at {off}");
        return Err(NativeError::Argument(text).into());
    }
    Ok(())
}

fn signed(bytes: &[u8]) -> &[i8] {
    // SAFETY: i8 and u8 have one size, one alignment and no invalid values.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

fn signed_mut(bytes: &mut [u8]) -> &mut [i8] {
    // SAFETY: as above; the borrow of `bytes` is exclusive and lives as long.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}
