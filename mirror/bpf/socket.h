/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the live socket of a connection says. */
#ifndef MR_SOCKET_H
#define MR_SOCKET_H

#include "kernel.h"
#include "parse.h"

struct live {
  __u32 rcv_nxt, rcv_edge, rcv_wup;
  __u32 snd_una, snd_nxt, snd_wnd, write_seq;
  __u32 ts_recent, tsecr;
  __u32 snd_first, rcv_first; /* of the connection's first octet each way: tells it from others of the same ports */
  __u64 bytes_sent, bytes_received;
  __u8 snd_scale, rcv_scale;
};

/* States in which data, or what was lost of it, still comes or goes. */
#define MR_MOVING \
  (1 << BPF_TCP_ESTABLISHED | 1 << BPF_TCP_FIN_WAIT1 | 1 << BPF_TCP_FIN_WAIT2 | 1 << BPF_TCP_CLOSE_WAIT | \
   1 << BPF_TCP_LAST_ACK | 1 << BPF_TCP_CLOSING)

/* Not a listener, nor one that connects or has ended: their numbers are none of a connection. */
static always_inline int is_moving(const struct bpf_sock *sk) {
  __u32 state = sk->state;
  return state < 32 && 1u << state & MR_MOVING;
}

/* BTF pointers to 5.15's verifier must be read one field at a time, while the socket is held. */
static always_inline void read_socket(struct tcp_sock *tp, struct live *live) {
  live->rcv_nxt = tp->rcv_nxt;
  live->rcv_wup = tp->rcv_wup;
  live->rcv_edge = tp->rcv_wup + tp->rcv_wnd;
  live->snd_una = tp->snd_una;
  live->snd_nxt = tp->snd_nxt;
  live->snd_wnd = tp->snd_wnd;
  live->write_seq = tp->write_seq;
  live->ts_recent = tp->rx_opt.ts_recent;
  live->tsecr = tp->rx_opt.rcv_tsecr;
  live->bytes_sent = tp->bytes_sent;
  live->bytes_received = tp->bytes_received;
  live->snd_first = live->snd_una - (__u32)tp->bytes_acked;
  live->rcv_first = live->rcv_nxt - (__u32)live->bytes_received;
  live->snd_scale = BPF_CORE_READ_BITFIELD(tp, rx_opt.snd_wscale);
  live->rcv_scale = BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale);
}

/* By address, with the far end as the source, in this network namespace. -1 where there is no such connection, or none that
 * moves data: a listener may be found in its place. */
static always_inline int look_up(struct __sk_buff *skb, const struct mr_key *from_far_end, int v6, struct live *live) {
  struct bpf_sock_tuple tuple = {};
  __u32 octets;
  if (v6) {
    __builtin_memcpy(tuple.ipv6.saddr, from_far_end->source, 16);
    __builtin_memcpy(tuple.ipv6.daddr, from_far_end->target, 16);
    tuple.ipv6.sport = from_far_end->source_port;
    tuple.ipv6.dport = from_far_end->target_port;
    octets = sizeof tuple.ipv6;
  } else {
    tuple.ipv4.saddr = from_far_end->source[3];
    tuple.ipv4.daddr = from_far_end->target[3];
    tuple.ipv4.sport = from_far_end->source_port;
    tuple.ipv4.dport = from_far_end->target_port;
    octets = sizeof tuple.ipv4;
  }
  struct bpf_sock *sk = bpf_skc_lookup_tcp(skb, &tuple, octets, BPF_F_CURRENT_NETNS, 0);
  if (!sk) return -1;
  struct tcp_sock *tp = is_moving(sk) ? bpf_skc_to_tcp_sock(sk) : 0;
  if (tp) read_socket(tp, live);
  bpf_sk_release(sk);
  return tp ? 0 : -1;
}

/* The socket that sends this segment: the buffer knows it, mostly. */
static always_inline int sending_socket(struct __sk_buff *skb, const struct packet *p, struct live *live) {
  struct bpf_sock *sk = skb->sk;
  if (sk && is_moving(sk)) {
    struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
    if (tp) {
      read_socket(tp, live);
      return 0;
    }
  }
  struct mr_key from_far_end;
  reverse(&p->key, &from_far_end);
  return look_up(skb, &from_far_end, p->v6, live);
}

#endif
