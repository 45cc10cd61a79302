//! Consumer and producer of named segment streams: no I/O, no clock.
