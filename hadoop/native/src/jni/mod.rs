//! The exported functions of `io.trunkline.hadoop.ndn.Native` and
//! `NativeSecurity`, and of `io.trunkline.hadoop.library.NativeSockets`: they
//! turn arguments into Rust, call the room behind, and turn results and errors
//! into Java. Nothing else happens here.
//!
//! No function dereferences anything that came from Java: handles go through
//! the [`Registry`], arrays through JNI's checked copies. A panic becomes an
//! `NdnException`, never a crash of the JVM.

mod arrays;
mod blocks;
mod failure;
mod node;
mod places;
mod secure;
mod socket;
mod stream;

use std::sync::Arc;

use jni::objects::JString;
use jni::{Env, EnvUnowned};
use ndn_packet::Name;

use crate::blocks::BlockSource;
use crate::error::NativeError;
use crate::fixed::FixedData;
use crate::handle::Registry;
use crate::node::NamedNode;
use crate::producer::StreamProducer;
use crate::pull::Pull;
use failure::{Failure, ThrowNdn};

/// What a handle can stand for. The number is the handle's node, by which all
/// that a node holds is found when it closes.
#[derive(Clone)]
enum Object {
    Node(Arc<NamedNode>),
    Producer(u64, Arc<StreamProducer>),
    Pull(u64, Arc<Pull>),
    Fixed(u64, Arc<FixedData>),
    Blocks(u64, Arc<BlockSource>),
}

impl Object {
    /// Whether this was opened on the node of that number.
    fn is_on(&self, node: u64) -> bool {
        match self {
            Object::Node(_) => false,
            Object::Producer(on, _)
            | Object::Pull(on, _)
            | Object::Fixed(on, _)
            | Object::Blocks(on, _) => *on == node,
        }
    }
}

static OBJECTS: Registry<Object> = Registry::new();

/// Runs the body of an exported function; what it returns as an error, or
/// panics with, is thrown in Java.
fn call<'local, T: Default>(
    mut env: EnvUnowned<'local>,
    body: impl FnOnce(&mut Env<'local>) -> Result<T, Failure>,
) -> T {
    env.with_env(body).resolve::<ThrowNdn>()
}

fn keep(object: Object) -> Result<i64, Failure> {
    let full = || NativeError::Failed("no handle is free: too many objects are open".into());
    Ok(OBJECTS.insert(object).ok_or_else(full)?)
}

fn node(handle: i64) -> Result<Arc<NamedNode>, NativeError> {
    match OBJECTS.get(handle) {
        Some(Object::Node(node)) => Ok(node),
        _ => Err(NativeError::NotOpen {
            what: "node",
            handle,
        }),
    }
}

fn text(env: &Env<'_>, what: &str, string: &JString<'_>) -> Result<String, Failure> {
    if string.is_null() {
        return Err(NativeError::Argument(format!("{what} is null")).into());
    }
    Ok(string.try_to_string(env)?)
}

fn name(env: &Env<'_>, string: &JString<'_>) -> Result<Name, Failure> {
    let text = text(env, "name", string)?;
    Ok(crate::config::parse_name(&text)?)
}

fn not_negative(what: &str, value: i64) -> Result<u64, NativeError> {
    u64::try_from(value).map_err(|_| NativeError::Argument(format!("{what} is {value}, below 0")))
}
