//! Both ends of a face by shared memory, and a peer that writes there what it likes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_io::fuzzing::rings(bytes));
