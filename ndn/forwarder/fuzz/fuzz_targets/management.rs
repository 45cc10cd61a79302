//! Parameters of commands and queries, and what answers and notifications tell.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ndn_forwarder::mgmt::{
    ControlParameters, ControlResponse, FaceEvent, FaceQueryFilter, GeneralStatus,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parameters) = ControlParameters::decode(bytes) {
        assert_eq!(ControlParameters::decode(&parameters.encode()), Ok(parameters));
    }
    if let Ok(filter) = FaceQueryFilter::decode(bytes) {
        assert_eq!(FaceQueryFilter::decode(&filter.encode()), Ok(filter));
    }
    if let Ok(response) = ControlResponse::decode(bytes) {
        assert_eq!(ControlResponse::decode(&response.encode()), Ok(response));
    }
    let _ = (FaceEvent::decode(bytes), GeneralStatus::decode(bytes));
});
