//! Any records of TLS, from a peer or from somebody on the way.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_io::fuzzing::tls(bytes));
