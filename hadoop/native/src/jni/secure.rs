//! Secure control connections, and the keys of writes.

use std::sync::Arc;

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use zeroize::Zeroizing;

use super::arrays::part;
use super::arrays::{bytes, signed, signed_mut};
use super::call;
use super::stream::key_bytes;
use crate::error::NativeError;
use crate::handle::Registry;
use crate::seal::WriteKey;
use crate::session::{MAX_RECORD_PLAIN, RECORD_OVERHEAD, Role, Session};

static SESSIONS: Registry<Arc<Session>> = Registry::new();

fn session(handle: i64) -> Result<Arc<Session>, NativeError> {
    SESSIONS.get(handle).ok_or(NativeError::NotOpen {
        what: "secure session",
        handle,
    })
}

/// `long sessionOpen(boolean server, byte[] password, byte[] prologue)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_sessionOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    server: jboolean,
    password: JByteArray<'local>,
    prologue: JByteArray<'local>,
) -> jlong {
    call(env, |env| {
        let role = if server { Role::Server } else { Role::Client };
        let password = Zeroizing::new(bytes(env, "password", &password)?);
        let prologue = bytes(env, "prologue", &prologue)?;
        let session = Session::new(role, &password, &prologue)?;
        let full = || NativeError::Failed("no handle is free: too many sessions are open".into());
        Ok(SESSIONS.insert(Arc::new(session)).ok_or_else(full)?)
    })
}

/// `byte[] sessionSay(long session)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_sessionSay<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JByteArray<'local> {
    call(env, |env| {
        let message = session(handle)?.say()?;
        Ok(env.byte_array_from_slice(&message)?)
    })
}

/// `void sessionHear(long session, byte[] message)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_sessionHear<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    message: JByteArray<'local>,
) {
    call(env, |env| {
        let message = bytes(env, "handshake message", &message)?;
        Ok(session(handle)?.hear(&message)?)
    })
}

/// `int sessionSeal(long session, byte[] from, int off, int length, byte[] to, int at)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_sessionSeal<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    from: JByteArray<'local>,
    off: jint,
    length: jint,
    to: JByteArray<'local>,
    at: jint,
) -> jint {
    record(env, handle, (from, off, length), (to, at), Session::seal)
}

/// `int sessionUnseal(long session, byte[] from, int off, int length, byte[] to, int at)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_sessionUnseal<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    from: JByteArray<'local>,
    off: jint,
    length: jint,
    to: JByteArray<'local>,
    at: jint,
) -> jint {
    record(env, handle, (from, off, length), (to, at), Session::open)
}

/// Fills with zeros, at the speed of that; by the byte it would cost more than the cipher.
fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

/// Copies a record in, does it, and copies it out.
fn record<'local>(
    env: EnvUnowned<'local>,
    handle: jlong,
    (from, off, length): (JByteArray<'local>, jint, jint),
    (to, at): (JByteArray<'local>, jint),
    done: impl FnOnce(&Session, &[u8], &mut [u8]) -> crate::Result<usize>,
) -> jint {
    const MOST: usize = MAX_RECORD_PLAIN + RECORD_OVERHEAD;
    call(env, |env| {
        let session = session(handle)?;
        let part_in = part(env, &from, off, length)?;
        if part_in.len > MOST {
            return Err(NativeError::Argument(format!("record of {length} bytes")).into());
        }
        let mut given = vec![0; part_in.len];
        from.get_region(env, part_in.at, signed_mut(&mut given))?;
        // Whether there is room is asked first: a record is done once.
        let most = part_in.len + RECORD_OVERHEAD;
        let room = part(env, &to, at, 0).and_then(|_| Ok(to.len(env)? - at as usize))?;
        let mut made = vec![0; most.min(room)];
        let length = done(&session, &given, &mut made)?;
        to.set_region(env, at, signed(&made[..length]))?;
        // One of the two may hold a token, or a write's key.
        wipe(&mut given);
        wipe(&mut made);
        Ok(length as jint)
    })
}

/// `void sessionClose(long session)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_sessionClose<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    call(env, |_| {
        drop(SESSIONS.remove(handle));
        Ok(())
    })
}

/// `byte[] keyDraw()`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_keyDraw<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> JByteArray<'local> {
    call(env, |env| {
        Ok(env.byte_array_from_slice(WriteKey::draw()?.bytes())?)
    })
}

/// `byte[] keyId(byte[] key)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_NativeSecurity_keyId<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    key: JByteArray<'local>,
) -> JByteArray<'local> {
    call(env, |env| {
        let key = WriteKey::new(&*key_bytes(env, &key)?);
        Ok(env.byte_array_from_slice(&key.id())?)
    })
}
