//! A named-data forwarder as a pure state machine: no I/O, no clock.
