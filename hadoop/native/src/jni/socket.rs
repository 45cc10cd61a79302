//! What Java cannot do with sockets.

use std::sync::Arc;

use jni::objects::{JClass, JObject};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned, jni_sig, jni_str};

use super::call;
use crate::error::NativeError;
use crate::handle::Registry;
use crate::low_water::LowWater;
use crate::readable;

static LOW_WATERS: Registry<Arc<LowWater>> = Registry::new();

fn failed(what: &str, error: &std::io::Error) -> NativeError {
    NativeError::Failed(format!("{what} of a socket: {error}"))
}

/// The descriptor of a channel of the JVM's own.
fn descriptor(env: &mut Env<'_>, channel: &JObject<'_>) -> jni::errors::Result<jint> {
    // SocketChannelImpl has it since Java 8.
    env.get_field(channel, jni_str!("fdVal"), jni_sig!("I"))?
        .i()
}

/// `long lowWaterOpen(SocketChannel channel)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_library_NativeSockets_lowWaterOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    channel: JObject<'local>,
) -> jlong {
    call(env, |env| {
        let fd = descriptor(env, &channel)?;
        let low_water = LowWater::of(fd).map_err(|e| failed("descriptor", &e))?;
        let full = || NativeError::Failed("no handle is free: too many sockets are open".into());
        Ok(LOW_WATERS.insert(Arc::new(low_water)).ok_or_else(full)?)
    })
}

/// `void lowWaterSet(long lowWater, int bytes)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_library_NativeSockets_lowWaterSet<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    bytes: jint,
) {
    call(env, |_| {
        let low_water = LOW_WATERS.get(handle).ok_or(NativeError::NotOpen {
            what: "low-water mark",
            handle,
        })?;
        Ok(low_water
            .set(bytes)
            .map_err(|e| failed("SO_RCVLOWAT", &e))?)
    })
}

/// `void lowWaterClose(long lowWater)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_library_NativeSockets_lowWaterClose<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    call(env, |_| {
        drop(LOW_WATERS.remove(handle));
        Ok(())
    })
}

/// `int descriptor(SocketChannel channel)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_library_NativeSockets_descriptor<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    channel: JObject<'local>,
) -> jint {
    call(env, |env| Ok(descriptor(env, &channel)?))
}

/// `boolean awaitReadable(int descriptor, int timeoutMs)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_library_NativeSockets_awaitReadable<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    descriptor: jint,
    timeout_ms: jint,
) -> jboolean {
    call(env, |_| {
        let found = readable::within(descriptor, timeout_ms.max(0));
        Ok(found.map_err(|e| failed("poll", &e))?)
    })
}
