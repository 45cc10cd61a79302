/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What goes in the place of a segment of MR_SND's that is not sent: its ACK alone, one octet of it, or, to our own stack,
 * D_j's ACK that was held for it. */
#ifndef MR_INSTEAD_H
#define MR_INSTEAD_H

#include "checksum.h"
#include "maps.h"

/* What D_j may still be sent beyond `acked`, in its scaled form. */
static always_inline __u16 window_from(__u32 edge, __u32 acked, __u8 scale) {
  __s32 left = edge - acked;
  __u32 window = left < 0 ? 0 : (__u32)left >> (scale & 15);
  return window > 0xffff ? 0xffff : window;
}

/* A segment is cut to its header, of these flags, with the number `seq`; `data`: and the first octet of its data, as data that
 * really goes (`snd_tell`). 0: done. */
checked_once int snd_cut(struct __sk_buff *skb, struct packet *p, __u32 seq, __u32 flags, __u32 data) {
  if (!p) return -1;
  __u32 octets = p->header;
  if (octets < 20) return -1;
  apart(octets);
  if (octets > 60) return -1;
  data = !!data;
  __u8 first[2] = {};
  if (data && bpf_skb_load_bytes(skb, p->l4 + octets, first, 1)) return -1;
  if (bpf_skb_change_tail(skb, p->l4 + octets + data, 0)) return -1;
  __be32 tcp[TCP_WORDS];
  __builtin_memcpy(tcp, p->tcp, sizeof tcp);
  tcp[TCP_SEQ] = bpf_htonl(seq);
  tcp[TCP_FLAGS] = flags_word(octets, data, flags, p->window);
  tcp[TCP_SUM] = sum_anew(p, tcp, TCP_WORDS, octets + data, bpf_htons(first[0] << 8));
  write_ip_length(skb, p, octets + data);
  __u32 bounded = p->header; /* once more: the verifier has forgotten */
  if (bounded < 20) return -1;
  apart(bounded);
  if (bounded > 60) return -1;
  bpf_skb_store_bytes(skb, p->l4, tcp, bounded, 0);
  return 0;
}

/* A segment that was cut goes through the device's queue once more, which has counted the whole one so far. */
static always_inline int go_anew(struct __sk_buff *skb) { return bpf_redirect(skb->ifindex, 0); }

/* One octet of a segment goes: D_j answers data at once, whatever it has of it, and tells of what it holds. It is one of the
 * stream's, as D_j may lack it. 0: `skb` is still to be dealt with, as it is where there was no memory to cut it. */
static always_inline int snd_ask_on(struct __sk_buff *skb, struct packet *p, int is_last) {
  __u32 mark = skb->mark;
  if (snd_cut(skb, p, p->seq, TCP_ACK, 1)) return is_last ? TC_ACT_STOLEN : 0;
  skb->mark = MR_RELEASED; /* our own egress must not judge it once more */
  if (is_last) return go_anew(skb);
  bpf_clone_redirect(skb, skb->ifindex, 0);
  skb->mark = mark;
  return 0;
}

static always_inline void swap_ends(__u8 *target, __u8 *source) {
  __u8 was[ETH_ALEN];
  __builtin_memcpy(was, target, ETH_ALEN);
  __builtin_memcpy(target, source, ETH_ALEN);
  __builtin_memcpy(source, was, ETH_ALEN);
}

/* D_j's ACK in the words of `tcp`. */
static always_inline void lay_ack(__be32 *tcp, const struct packet *p, __u32 octets, __u32 acked, __be32 ts, __u16 window) {
  tcp[TCP_PORTS] = bpf_htonl((__u32)bpf_ntohs(p->key.target_port) << 16 | bpf_ntohs(p->key.source_port));
  tcp[TCP_SEQ] = bpf_htonl(p->acked);
  tcp[TCP_ACKED] = bpf_htonl(acked);
  tcp[TCP_FLAGS] = flags_word(octets, 0, TCP_ACK, window);
  tcp[TCP_SUM] = 0;
  tcp[TCP_OPTIONS] = p->has_ts ? bpf_htonl(0x0101080a) : 0;
  tcp[TCP_OPTIONS + 1] = p->has_ts ? ts : 0;
  tcp[TCP_OPTIONS + 2] = p->has_ts ? p->their_ts : 0;
  tcp[TCP_SUM] = sum_anew(p, tcp, TCP_STAMPED, octets, 0);
}

/* Headers over those of the frame: `before` octets, then TCP's. */
static always_inline int store_ack(struct __sk_buff *skb, const void *headers, __u32 before, __u32 octets) {
  __u32 all = before + octets;
  apart(all); /* else older verifiers lose its bounds */
  if (all < 20 || all > before + 4 * TCP_STAMPED) return TC_ACT_STOLEN;
  return bpf_skb_store_bytes(skb, 0, headers, all, 0) ? TC_ACT_STOLEN : TC_ACT_OK;
}

/* A segment that is not sent, turned into D_j's ACK that was held for it, and given to our own stack. Only its headers
 * change: the stack cuts the rest off, as IP's length says. IP's options stay. Apart for either version of IP, as one
 * stack has no room for both. */
checked_once int snd_turn_v4(struct __sk_buff *skb, struct packet *p, __u32 acked, __be32 ts, __u32 window) {
  if (!p) return TC_ACT_STOLEN;
  struct {
    __u16 aside; /* so that words lie on words */
    __u8 target[ETH_ALEN], source[ETH_ALEN];
    __be16 type;
    struct ip_v4 ip;
    __be32 tcp[TCP_STAMPED];
  } at;
  const __u32 before = ETH_HLEN + sizeof at.ip, octets = 4 * (p->has_ts ? TCP_STAMPED : TCP_OPTIONS);
  if (bpf_skb_load_bytes(skb, 0, at.target, before)) return TC_ACT_STOLEN;
  __be16 length = bpf_htons(p->l4 - L3 + octets);
  at.ip.sum = ~fold((__u64)(__u16)~at.ip.sum + (__u16)~at.ip.length + length);
  at.ip.length = length;
  at.ip.from = p->key.target[3];
  at.ip.to = p->key.source[3];
  swap_ends(at.target, at.source);
  lay_ack(at.tcp, p, octets, acked, ts, window);
  if (p->l4 == before) return store_ack(skb, at.target, before, octets);
  if (bpf_skb_store_bytes(skb, 0, at.target, before, 0)) return TC_ACT_STOLEN;
  __u32 bounded = octets;
  apart(bounded);
  if (bounded < 20 || bounded > sizeof at.tcp) return TC_ACT_STOLEN;
  bpf_skb_store_bytes(skb, p->l4, at.tcp, bounded, 0);
  return TC_ACT_OK;
}

checked_once int snd_turn_v6(struct __sk_buff *skb, struct packet *p, __u32 acked, __be32 ts, __u32 window) {
  if (!p) return TC_ACT_STOLEN;
  struct {
    __u16 aside;
    __u8 target[ETH_ALEN], source[ETH_ALEN];
    __be16 type;
    struct ip_v6 ip;
    __be32 tcp[TCP_STAMPED];
  } at;
  const __u32 before = ETH_HLEN + sizeof at.ip, octets = 4 * (p->has_ts ? TCP_STAMPED : TCP_OPTIONS);
  if (bpf_skb_load_bytes(skb, 0, at.target, before)) return TC_ACT_STOLEN;
  at.ip.length = bpf_htons(octets);
  __builtin_memcpy(at.ip.from, p->key.target, 16);
  __builtin_memcpy(at.ip.to, p->key.source, 16);
  swap_ends(at.target, at.source);
  lay_ack(at.tcp, p, octets, acked, ts, window);
  return store_ack(skb, at.target, before, octets);
}

#endif
