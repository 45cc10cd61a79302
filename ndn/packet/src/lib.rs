//! NDN Packet Format 0.3 and NDNLPv2: views over bytes, encoders, signatures.
