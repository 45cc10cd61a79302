//! Both ends of packets lent in shared memory, and a peer that lends and frees what it likes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_io::fuzzing::lending(bytes));
