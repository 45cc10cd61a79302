//! The exported functions of `io.trunkline.hadoop.ucx.UcxNative`: what UCX needs of native code beside jucx. Clients unpack
//! and load this at each start, so that it stays small.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// What libucs reads when it is loaded (`ucs_global_opts`): the signals it takes for errors.
const ERROR_SIGNALS: &CStr = c"UCX_ERROR_SIGNALS";

/// `ucs_status_t` of `ucp_worker_arm`: there are events to look after first.
const UCS_ERR_BUSY: i8 = -15;

static ARM: OnceLock<Arm> = OnceLock::new();

/// `ucp_worker_arm` (UCP API, wake-up routines); `ucs_status_t` is an enum of one byte.
type Arm = unsafe extern "C" fn(*mut c_void) -> i8;

/// Has UCX, which is not loaded yet, leave the signals of errors alone. Returns whether that could be said.
///
/// UCX installs handlers of its own for SIGSEGV and its like when it is loaded, by which any such signal ends the process,
/// and jucx takes them away a moment later. A JVM lives on SIGSEGV: by it compiled code finds null and stops for the
/// collector. What is in the environment when UCX is loaded keeps it from installing any; Java can't change that itself.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ucx_UcxNative_keepOffSignals(
    _env: *mut c_void,
    _class: *mut c_void,
) -> u8 {
    // SAFETY: both are C strings. Java code has a copy of the environment of its own. Native code may read it at the same
    // time: the first that adds to it, as this mostly is, leaves the array that a process begins with as it is.
    let said = unsafe { libc::setenv(ERROR_SIGNALS.as_ptr(), c"".as_ptr(), 1) };
    u8::from(said == 0)
}

/// Arms a worker, the native id of a `UcpWorker` that is open and that no other thread calls now. Returns 1 when its file
/// descriptor tells of what comes from now on, 0 when there are events to look after first, and else UCX's (negative)
/// status.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ucx_UcxNative_armWorker(
    _env: *mut c_void,
    _class: *mut c_void,
    worker: i64,
) -> c_int {
    let Some(arm) = ARM.get() else {
        return c_int::from(i8::MIN);
    };
    // SAFETY: the caller says that this is a worker, and that it has it to itself.
    match unsafe { arm(worker as *mut c_void) } {
        0 => 1,
        UCS_ERR_BUSY => 0,
        status => c_int::from(status),
    }
}

/// Finds what [`Java_io_trunkline_hadoop_ucx_UcxNative_armWorker`] calls, in the libucp that is loaded already. Returns
/// whether it is there.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ucx_UcxNative_findArm(
    _env: *mut c_void,
    _class: *mut c_void,
) -> u8 {
    let found = find_arm().map(|arm| ARM.get_or_init(|| arm));
    u8::from(found.is_some())
}

fn find_arm() -> Option<Arm> {
    // SAFETY: nothing is loaded by this; the names are C strings, and the function has that type in every UCX 1.x.
    unsafe {
        let ucp = libc::dlopen(c"libucp.so.0".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if ucp.is_null() {
            return None;
        }
        let arm = libc::dlsym(ucp, c"ucp_worker_arm".as_ptr());
        (!arm.is_null()).then(|| std::mem::transmute::<*mut c_void, Arm>(arm))
    }
}

/// Sleeps until the file descriptor of an armed worker is readable, at most so many milliseconds, or until a signal comes.
/// Returns at once for what is no file descriptor.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_trunkline_hadoop_ucx_UcxNative_awaitReadable(
    _env: *mut c_void,
    _class: *mut c_void,
    descriptor: c_int,
    most_ms: c_int,
) {
    let mut wanted = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    if descriptor >= 0 {
        // SAFETY: one descriptor, which lives as long as the call.
        unsafe { libc::poll(&raw mut wanted, 1, most_ms.max(0)) };
    }
}
