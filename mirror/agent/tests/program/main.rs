//! Each case of the eBPF programs, on frames that the kernel runs them on (BPF_PROG_TEST_RUN), beside real sockets. Needs
//! root and a kernel with BTF; without, each says so and passes.

mod acks;
mod again;
mod bench;
mod costs;
mod coupled;
mod holes;
mod packets;
mod pool;
mod processors;
mod ranges;
mod receive;
mod retransmit;
mod send;
mod sender;
mod sockets;
mod start;
mod switch;
