//! The exported function of `io.trunkline.hadoop.ucx.UcxSignals`.
//!
//! UCX installs handlers of its own for SIGSEGV and its like when it is loaded, by which any such signal ends the process,
//! and jucx takes them away a moment later. A JVM lives on SIGSEGV: by it compiled code finds null and stops for the
//! collector. What is in the environment when UCX is loaded keeps it from installing any; Java can't change that itself.
//! Clients unpack and load this at each start, so that it stays this small.

use std::ffi::{CStr, c_void};

/// What libucs reads when it is loaded (`ucs_global_opts`): the signals it takes for errors, and the one for debugging.
const KEEP_OFF: [(&CStr, &CStr); 2] = [(c"UCX_ERROR_SIGNALS", c""), (c"UCX_DEBUG_SIGNO", c"0")];

/// Has UCX, which is not loaded yet, leave all signals alone. Returns whether that could be said.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ucx_UcxSignals_keepOff(
    _env: *mut c_void,
    _class: *mut c_void,
) -> u8 {
    let mut said = true;
    for (name, value) in KEEP_OFF {
        // SAFETY: both are C strings. Java code has a copy of the environment of its own; native code that reads it at the
        // same time sees the old or the new one, neither of which the C library frees.
        said &= unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) } == 0;
    }
    u8::from(said)
}
