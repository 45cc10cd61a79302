//! Errors and panics on their way into Java.

use std::any::Any;

use jni::errors::ErrorPolicy;
use jni::strings::{JNIStr, JNIString};
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

const NDN: &JNIStr = jni_str!("io/trunkline/hadoop/ndn/NdnException");

/// What Java tells failures apart by: their class, never their text.
fn class_of(error: &NativeError) -> &'static JNIStr {
    match error {
        NativeError::Timeout { .. } => jni_str!("java/net/SocketTimeoutException"),
        NativeError::NotOpen { .. } | NativeError::Closed { .. } => {
            jni_str!("io/trunkline/hadoop/ndn/ClosedException")
        }
        NativeError::Unverified { .. } => jni_str!("io/trunkline/hadoop/ndn/UnverifiedException"),
        NativeError::NoRoom(_) => jni_str!("io/trunkline/hadoop/ndn/NoRoomException"),
        NativeError::Config(_)
        | NativeError::Name { .. }
        | NativeError::Argument(_)
        | NativeError::Failed(_) => NDN,
    }
}

/// Throws the exception that stands for a failure.
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
        let (class, text) = match &failure {
            Failure::Native(error) => (class_of(error), error.to_string()),
            Failure::Jni(error) => (NDN, format!("call of the native library: {error}")),
        };
        throw(env, class, text)?;
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
        throw(
            env,
            NDN,
            format!("fault inside the native library, please report it: {said}"),
        )?;
        Ok(T::default())
    }
}

fn throw(env: &mut Env<'_>, class: &'static JNIStr, text: String) -> jni::errors::Result<()> {
    let class = env.find_class(class)?;
    // A throw that succeeds is reported as the exception now pending.
    match env.throw_new(class, JNIString::new(text)) {
        Err(jni::errors::Error::JavaException) => Ok(()),
        other => other,
    }
}
