//! Each case of the eBPF programs, on frames that the kernel runs them on (BPF_PROG_TEST_RUN), beside real sockets. Needs
//! root and a kernel with BTF; without, each says so and passes.

mod acks;
mod bench;
mod coupled;
mod packets;
mod ranges;
mod receive;
mod send;
mod sender;
mod sockets;
mod start;
mod switch;
