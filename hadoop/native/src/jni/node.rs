//! Nodes, single fetches and single publications.

use std::time::Duration;

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::{jboolean, jint, jlong};
use zeroize::Zeroizing;

use super::arrays::{bytes, longs};
use super::{OBJECTS, Object, call, keep, name, node, not_negative, text};
use crate::config::NodeSettings;
use crate::error::NativeError;
use crate::fetch::FetchSettings;
use crate::node::NamedNode;
use crate::scalars::scalars;

/// `long nodeOpen(String json)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_nodeOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    json: JString<'local>,
) -> jlong {
    call(env, |env| {
        let settings = NodeSettings::from_json(&text(env, "configuration", &json)?)?;
        keep(Object::Node(NamedNode::open(settings)?))
    })
}

/// `void nodeClose(long node)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_nodeClose<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    call(env, |_| {
        if let Ok(node) = node(handle) {
            OBJECTS.remove(handle);
            drop(OBJECTS.remove_where(|object| object.is_on(node.number())));
            node.close();
        }
        Ok(())
    })
}

/// `String nodeStatus(long node)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_nodeStatus<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JString<'local> {
    call(env, |env| {
        let json = node(handle)?.status()?;
        Ok(JString::from_str(env, json)?)
    })
}

/// `boolean routerUp(long node)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_routerUp<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jboolean {
    call(env, |_| Ok(node(handle)?.router_up()?))
}

/// `String[] scalars(byte[] json)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_scalars<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    json: JByteArray<'local>,
) -> JObjectArray<'local, JString<'local>> {
    call(env, |env| {
        let found = scalars(&bytes(env, "JSON", &json)?)?;
        let texts = found.into_iter().flat_map(|(name, value)| [name, value]);
        let texts: Vec<String> = texts.collect();
        let array = JObjectArray::<JString>::new(env, texts.len(), JString::null())?;
        for (at, text) in texts.into_iter().enumerate() {
            let text = JString::from_str(env, text)?;
            array.set_element(env, at, text)?;
        }
        Ok(array)
    })
}

/// `byte[] fetch(long node, String name, boolean mustBeFresh, boolean canBePrefix, boolean rejected,
/// int timeoutMs)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_fetch<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    must_be_fresh: jboolean,
    can_be_prefix: jboolean,
    rejected: jboolean,
    timeout_ms: jint,
) -> JByteArray<'local> {
    call(env, |env| {
        let timeout = Duration::from_millis(not_negative("time-out", timeout_ms.into())?);
        let name = name(env, &uri)?;
        let settings = FetchSettings {
            must_be_fresh,
            can_be_prefix,
            rejected,
            timeout,
        };
        match node(handle)?.fetch(&name, settings)? {
            Some(content) => Ok(env.byte_array_from_slice(&content)?),
            None => Ok(JByteArray::default()),
        }
    })
}

/// `long[] blockMetadata(long node, String name, byte[][] manifest, int timeoutMs)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_blockMetadata<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    manifest: JObjectArray<'local, JByteArray<'local>>,
    timeout_ms: jint,
) -> JLongArray<'local> {
    call(env, |env| {
        let timeout = Duration::from_millis(not_negative("time-out", timeout_ms.into())?);
        let name = name(env, &uri)?;
        let node = node(handle)?;
        let Some(facts) = node.block_metadata(&name, timeout)? else {
            return Ok(JLongArray::default());
        };
        if let Some(digests) = node.block_manifest(&name.parent(), &facts, timeout)? {
            let digests = env.byte_array_from_slice(&digests)?;
            manifest.set_element(env, 0, digests)?;
        }
        longs(env, &facts.to_java())
    })
}

/// `long[] contentKey(long node, String version, byte[] identifier, byte[] password, byte[][] key,
/// int timeoutMs)`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature is Java's
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_contentKey<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    version: JString<'local>,
    identifier: JByteArray<'local>,
    password: JByteArray<'local>,
    key: JObjectArray<'local, JByteArray<'local>>,
    timeout_ms: jint,
) -> JLongArray<'local> {
    call(env, |env| {
        let timeout = Duration::from_millis(not_negative("time-out", timeout_ms.into())?);
        let version = name(env, &version)?;
        let identifier = bytes(env, "identifier", &identifier)?;
        let password = Zeroizing::new(bytes(env, "password", &password)?);
        let token = (&identifier[..], &password[..]);
        let Some(granted) = node(handle)?.content_key(&version, token, timeout)? else {
            return Ok(JLongArray::default());
        };
        let id = env.byte_array_from_slice(&granted.id.to_bytes())?;
        key.set_element(env, 0, id)?;
        let bytes = env.byte_array_from_slice(granted.key.bytes())?;
        key.set_element(env, 1, bytes)?;
        longs(env, &granted.metadata.to_java())
    })
}

/// `long publishStatic(long node, String name, byte[] content, long freshnessMs)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_publishStatic<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    content: JByteArray<'local>,
    freshness_ms: jlong,
) -> jlong {
    call(env, |env| {
        if content.is_null() {
            return Err(NativeError::Argument("content is null".into()).into());
        }
        let freshness = Duration::from_millis(not_negative("freshness", freshness_ms)?);
        let name = name(env, &uri)?;
        let content = env.convert_byte_array(&content)?;
        let node = node(handle)?;
        let fixed = node.publish_fixed(&name, &content, freshness)?;
        keep(Object::Fixed(node.number(), fixed))
    })
}

/// `void unpublish(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ndn_Native_unpublish<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    call(env, |_| {
        if let Some(Object::Fixed(_, fixed)) = OBJECTS.get(handle) {
            OBJECTS.remove(handle);
            fixed.close();
        }
        Ok(())
    })
}
