//! Producers and pulls of segments.

use std::time::Duration;

use jni::objects::{JByteArray, JClass, JString};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};
use zeroize::Zeroizing;

use super::arrays::{part, signed, signed_mut};
use super::places::Places;
use super::{Failure, OBJECTS, Object, call, keep, name, node, not_negative};
use crate::error::NativeError;
use crate::producer::Retain;
use crate::pull::PullSettings;
use crate::seal::{StreamKind, WRITE_KEY_LEN, WriteKey};
use crate::segment::{DIGEST_LEN, HEADER_LEN, SegmentDigest, SegmentHeader};

/// `long producerOpen(long node, String prefix, int segmentBytes, int retainSegments, byte[] key, int kind)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_producerOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    prefix: JString<'local>,
    segment_bytes: jint,
    retain_segments: jint,
    key: JByteArray<'local>,
    kind: jint,
) -> jlong {
    call(env, |env| {
        let retain = Retain {
            segments: at_least_one("segments to retain", retain_segments)?,
            segment_bytes: at_least_one("bytes of a segment", segment_bytes)?,
        };
        let prefix = name(env, &prefix)?;
        let sealer = write_key(env, &key, kind)?.map(|(key, kind)| key.sealer(kind));
        let node = node(handle)?;
        keep(Object::Producer(
            node.number(),
            node.open_sealed_producer(&prefix, retain, sealer)?,
        ))
    })
}

/// `void producerPublish(long producer, long segment, byte[] header, byte[] body, int sumsAt,
/// int sumsLength, int dataAt, int dataLength, boolean more, byte[] digests, int digestAt)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_producerPublish<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    segment: jlong,
    header: JByteArray<'local>,
    body: JByteArray<'local>,
    sums_at: jint,
    sums_len: jint,
    data_at: jint,
    data_len: jint,
    more: jboolean,
    digests: JByteArray<'local>,
    digest_at: jint,
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
        let sums = part(env, &body, sums_at, sums_len)?;
        let data = part(env, &body, data_at, data_len)?;
        if !digests.is_null() {
            part(env, &digests, digest_at, DIGEST_LEN as jint)?;
        }
        let len = HEADER_LEN + sums.len + data.len;
        let sums_len = sums.len;
        let mut places = Places::new(&body, [sums, data]);
        header.get_region(env, 0, signed_mut(&mut places.header))?;
        let checksum = SegmentHeader::decode(&places.header)
            .map_err(|e| NativeError::Argument(e.to_string()))?
            .checksum;
        producer.publish(segment, len, checksum, more, |at, piece| {
            places.get(env, at, piece)
        })?;
        if !digests.is_null() {
            let mut front = vec![0; HEADER_LEN + sums_len];
            places.get(env, 0, &mut front)?;
            if let Some(digest) = SegmentDigest::of(&front) {
                digests.set_region(env, digest_at, signed(&digest.0))?;
            }
        }
        Ok(())
    })
}

/// `boolean producerKept(long producer, long segment, byte[] dst, int sumsAt, int sumsLength,
/// int dataAt, int dataLength)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_producerKept<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    segment: jlong,
    dst: JByteArray<'local>,
    sums_at: jint,
    sums_len: jint,
    data_at: jint,
    data_len: jint,
) -> jboolean {
    call(env, |env| {
        let Some(Object::Producer(_, producer)) = OBJECTS.get(handle) else {
            return Ok(false);
        };
        let sums = part(env, &dst, sums_at, sums_len)?;
        let data = part(env, &dst, data_at, data_len)?;
        let Some(content) = producer.kept(not_negative("segment", segment)?) else {
            return Ok(false);
        };
        if content.len() != HEADER_LEN + sums.len + data.len {
            let len = content.len() - HEADER_LEN;
            let text = format!("segment {segment} has a body of {len} bytes, not those asked for");
            return Err(NativeError::Argument(text).into());
        }
        Places::new(&dst, [sums, data]).put(env, 0, &content)?;
        Ok(true)
    })
}

/// `void producerAcknowledge(long producer, long upto)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_producerAcknowledge<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    upto: jlong,
) {
    call(env, |_| {
        if let (Some(Object::Producer(_, producer)), Ok(upto)) =
            (OBJECTS.get(handle), u64::try_from(upto))
        {
            producer.acknowledge(upto);
        }
        Ok(())
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

/// `long pullOpen(long node, String prefix, int segmentBytes, long firstSegment, int window,
/// boolean live, long last, byte[] key, int kind)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_pullOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    prefix: JString<'local>,
    segment_bytes: jint,
    first_segment: jlong,
    window: jint,
    live: jboolean,
    last: jlong,
    key: JByteArray<'local>,
    kind: jint,
) -> jlong {
    call(env, |env| {
        let opener = write_key(env, &key, kind)?.map(|(key, kind)| key.opener(kind));
        let settings = PullSettings {
            first: not_negative("first segment", first_segment)?,
            last: u64::try_from(last).ok(),
            segment_bytes: at_least_one("bytes of a segment", segment_bytes)?,
            window: at_least_one("window", window)?,
            live,
        };
        let prefix = name(env, &prefix)?;
        let node = node(handle)?;
        keep(Object::Pull(
            node.number(),
            node.open_sealed_pull(&prefix, settings, opener)?,
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

/// `int pullTake(long pull, long segment, byte[] header, byte[] dst, int off, int max,
/// byte[] digest, int digestAt, int timeoutMs)`
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
    digest: JByteArray<'local>,
    digest_at: jint,
    timeout_ms: jint,
) -> jint {
    call(env, |env| {
        let mut to = Places::new(&dst, [part(env, &dst, off, max)?]);
        let digest = segment_digest(env, &digest, digest_at)?;
        let put = |at, piece: &[u8]| to.put(env, at, piece);
        let Some(len) = take(env, handle, segment, &header, digest, timeout_ms, put)? else {
            return Ok(-1);
        };
        if len > max as usize {
            let text = format!("segment {segment} has a body of {len} bytes, {max} were expected");
            return Err(NativeError::Failed(text).into());
        }
        header.set_region(env, 0, signed(&to.header))?;
        Ok(len as jint)
    })
}

/// `boolean pullTakePiece(long pull, long segment, byte[] header, byte[] dst, int sumsAt,
/// int sumsLength, int dataAt, int dataLength, byte[] digest, int digestAt, int timeoutMs)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_pullTakePiece<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    segment: jlong,
    header: JByteArray<'local>,
    dst: JByteArray<'local>,
    sums_at: jint,
    sums_len: jint,
    data_at: jint,
    data_len: jint,
    digest: JByteArray<'local>,
    digest_at: jint,
    timeout_ms: jint,
) -> jboolean {
    call(env, |env| {
        let sums = part(env, &dst, sums_at, sums_len)?;
        let data = part(env, &dst, data_at, data_len)?;
        let expected = sums.len + data.len;
        let mut to = Places::new(&dst, [sums, data]);
        let digest = segment_digest(env, &digest, digest_at)?;
        let put = |at, piece: &[u8]| to.put(env, at, piece);
        let Some(len) = take(env, handle, segment, &header, digest, timeout_ms, put)? else {
            return Ok(false);
        };
        if len != expected {
            let text =
                format!("segment {segment} has a body of {len} bytes, {expected} were expected");
            return Err(NativeError::Failed(text).into());
        }
        header.set_region(env, 0, signed(&to.header))?;
        Ok(true)
    })
}

/// Takes a segment piece by piece: the length of its body; `None` when the time
/// has passed.
fn take(
    env: &Env<'_>,
    handle: jlong,
    segment: jlong,
    header: &JByteArray<'_>,
    digest: Option<SegmentDigest>,
    timeout_ms: jint,
    put: impl FnMut(usize, &[u8]) -> Result<(), Failure>,
) -> Result<Option<usize>, Failure> {
    let Some(Object::Pull(_, pull)) = OBJECTS.get(handle) else {
        return Err(NativeError::NotOpen {
            what: "pull",
            handle,
        }
        .into());
    };
    let segment = not_negative("segment", segment)?;
    let timeout = Duration::from_millis(not_negative("time-out", timeout_ms.into())?);
    check_header(env, header)?;
    let Some(len) = pull.take_into(segment, digest, timeout, put)? else {
        return Ok(None);
    };
    let body = len.checked_sub(HEADER_LEN).ok_or_else(|| {
        let text = format!("segment {segment} has {len} bytes, its header alone has 24");
        NativeError::Failed(text)
    })?;
    Ok(Some(body))
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

/// The key of a write and which of its streams; `None` for a null array.
fn write_key(
    env: &Env<'_>,
    key: &JByteArray<'_>,
    kind: jint,
) -> Result<Option<(WriteKey, StreamKind)>, Failure> {
    if key.is_null() {
        return Ok(None);
    }
    let kind = StreamKind::from_number(kind)
        .ok_or_else(|| NativeError::Argument(format!("kind of stream {kind}")))?;
    let bytes = key_bytes(env, key)?;
    Ok(Some((WriteKey::new(&bytes), kind)))
}

/// The bytes of a key.
pub(super) fn key_bytes(
    env: &Env<'_>,
    key: &JByteArray<'_>,
) -> Result<Zeroizing<[u8; WRITE_KEY_LEN]>, Failure> {
    if key.is_null() || key.len(env)? != WRITE_KEY_LEN {
        return Err(NativeError::Argument("key array is null or not 16 bytes long".into()).into());
    }
    let mut bytes = Zeroizing::new([0; WRITE_KEY_LEN]);
    key.get_region(env, 0, signed_mut(&mut *bytes))?;
    Ok(bytes)
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

/// What a segment must be; `None` for a null array.
fn segment_digest(
    env: &Env<'_>,
    digest: &JByteArray<'_>,
    at: jint,
) -> Result<Option<SegmentDigest>, Failure> {
    if digest.is_null() {
        return Ok(None);
    }
    let part = part(env, digest, at, DIGEST_LEN as jint)?;
    let mut bytes = [0; DIGEST_LEN];
    digest.get_region(env, part.at, signed_mut(&mut bytes))?;
    Ok(Some(SegmentDigest(bytes)))
}
