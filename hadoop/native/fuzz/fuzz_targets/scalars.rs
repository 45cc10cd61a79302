//! What comes as a DataNode's record, which anybody on the network may answer with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_native::scalars;

fuzz_target!(|bytes: &[u8]| {
    let Ok(found) = scalars(bytes) else { return };
    for (name, value) in &found {
        // Names are bounded, so that many values deep within keep no more than came.
        assert!(name.len() <= 201 + 17, "{name}");
        assert!(value.len() <= bytes.len().max(24), "{value}");
    }
    assert!(found.len() <= bytes.len());
});
