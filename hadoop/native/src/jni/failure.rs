//! Errors and panics on their way into Java.

use std::any::Any;

use jni::errors::ErrorPolicy;
use jni::strings::JNIString;
use jni::{Env, jni_str};

use crate::error::NativeError;

/// Why an exported function ends without a value.
pub(super) enum Failure {
    /// Our own reasons.
    Native(NativeError),
    /// A JNI call failed; an exception may be pending already.
    Jni(jni::errors::Error),
}

impl From<NativeError> for Failure {
    fn from(error: NativeError) -> Self {
        Failure::Native(error)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Failure::Jni(error)
    }
}

/// Throws `NdnException`, or `SocketTimeoutException` for a wait that ended.
pub(super) struct ThrowNdn;

impl<T: Default> ErrorPolicy<T, Failure> for ThrowNdn {
    type Captures<'local: 'method, 'method> = ();

    fn on_error<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        if env.exception_check() {
            return Ok(T::default());
        }
        match failure {
            Failure::Native(error @ NativeError::Timeout { .. }) => {
                let class = env.find_class(jni_str!("java/net/SocketTimeoutException"))?;
                throw(env.throw_new(class, JNIString::new(error.to_string())))?;
            }
            Failure::Native(error) => throw_ndn(env, error.to_string())?,
            Failure::Jni(error) => throw_ndn(env, format!("call of the native library: {error}"))?,
        }
        Ok(T::default())
    }

    fn on_panic<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut (),
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        if env.exception_check() {
            return Ok(T::default());
        }
        let said = payload
            .downcast_ref::<&'static str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no text".to_owned());
        throw_ndn(
            env,
            format!("fault inside the native library, please report it: {said}"),
        )?;
        Ok(T::default())
    }
}

fn throw_ndn(env: &mut Env<'_>, text: String) -> jni::errors::Result<()> {
    let class = env.find_class(jni_str!("io/trunkline/hadoop/ndn/NdnException"))?;
    throw(env.throw_new(class, JNIString::new(text)))
}

/// A throw that succeeds is reported as the exception now pending.
fn throw(result: jni::errors::Result<()>) -> jni::errors::Result<()> {
    match result {
        Err(jni::errors::Error::JavaException) => Ok(()),
        other => other,
    }
}
