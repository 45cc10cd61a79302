/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the programs know of the kernel: its stable interface by its own headers, and the few fields of a live TCP
 * socket that they read. The latter are no interface; each is found by name in the running kernel's BTF (CO-RE), so
 * only names and types count here, not places. */
#ifndef MR_KERNEL_H
#define MR_KERNEL_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct tcp_options_received {
  __u32 ts_recent;     /* the far end's newest timestamp, to be echoed */
  __u32 rcv_tsecr;     /* what the far end echoed last */
  __u16 snd_wscale : 4; /* scale of the windows that the far end advertises */
  __u16 rcv_wscale : 4; /* scale of those that we advertise */
};

struct tcp_sock {
  __u32 rcv_nxt;
  __u32 rcv_wup; /* rcv_nxt when the window was last advertised */
  __u32 rcv_wnd;
  __u32 snd_una;
  __u32 snd_nxt;
  __u32 snd_wnd;
  __u32 write_seq; /* behind all that was written, sent or not */
  __u64 bytes_sent;
  __u64 bytes_acked;
  __u64 bytes_received;
  struct tcp_options_received rx_opt;
};

#pragma clang attribute pop

#define always_inline inline __attribute__((always_inline))

/* Keeps the compiler from making one comparison of two, of another register than the one that is used afterwards: what
 * older verifiers learn from a comparison they know of that register alone. */
#define apart(value) asm volatile("" : "+r"(value))

/* A function that the verifier checks once, for any packet, and not anew for each way by which it is come to. What it
 * gives to a map as a key must be on its own stack, as kernels before 6.2 want. */
#define checked_once __attribute__((noinline))

/* Sequence numbers wrap: one comes after another when it is less than half the space ahead of it. */
static always_inline int after(__u32 a, __u32 b) { return (__s32)(a - b) > 0; }
static always_inline int before(__u32 a, __u32 b) { return (__s32)(a - b) < 0; }
static always_inline __u32 later(__u32 a, __u32 b) { return after(a, b) ? a : b; }
static always_inline __u32 earlier(__u32 a, __u32 b) { return before(a, b) ? a : b; }

#endif
