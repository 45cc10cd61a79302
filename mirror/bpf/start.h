/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where streams start, written down at both ends of every connection of a data port: its announcement may come when the
 * set-up response, which alone tells, has passed. */
#ifndef MR_START_H
#define MR_START_H

#include "maps.h"
#include "socket.h"

static always_inline int is_data_port(const struct mr_config *config, __be16 port) {
  int found = 0;
  for (int i = 0; i < MR_DATA_PORTS; i++) found |= config->data_ports[i] == port;
  return port && found;
}

/* What the segment has to do with data ports. */
static always_inline void look_at_ports(struct packet *p) {
  __u32 zero = 0;
  struct mr_config *config = bpf_map_lookup_elem(&mr_config, &zero);
  if (!config) return;
  p->off = !!config->off;
  p->repeat_ms = config->repeat_ms;
  p->from_data = is_data_port(config, p->key.source_port);
  p->to_data = is_data_port(config, p->key.target_port);
}

/* Where `mr_looked` has a connection, of its key in the block's direction, and what it has there. */
static always_inline __u32 look_place(const struct mr_key *key, __u32 *place) {
  const __u64 mix = 0x9e3779b97f4a7c15;
  __u64 hash = (__u64)key->source_port << 16 | key->target_port;
  for (int i = 0; i < 4; i++) {
    hash = (hash ^ ((__u64)key->source[i] << 32 | key->target[i])) * mix;
    hash ^= hash >> 32;
  }
  *place = (hash >> 32) % MR_STARTS;
  return (__u32)hash | 1;
}

/* A new connection of this host: what is known of an earlier one of the same ports is void. Our own SYN tells, never one
 * that comes in, as a stranger can send those. */
checked_once int start_anew(struct packet *p) {
  if (!p) return 0;
  struct mr_key key;
  if (p->flags & TCP_ACK) {
    reverse(&p->key, &key);
    bpf_map_delete_elem(&mr_rcv_flows, &key);
    bpf_map_delete_elem(&mr_heads, &key);
  } else {
    key = p->key;
    bpf_map_delete_elem(&mr_snd_flows, &key);
  }
  bpf_map_delete_elem(&mr_starts, &key);
  if (p->flags & TCP_ACK) return 0;
  /* Last: who sees it cleared finds no entry of the old connection. */
  __u32 place, *looked;
  look_place(&key, &place);
  looked = bpf_map_lookup_elem(&mr_looked, &place);
  if (looked) *looked = 0;
  return 0;
}

/* From this host, where it is D_j: its first segment with data is the response. */
checked_once int start_egress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return 0;
  struct live live = {};
  if (sending_socket(skb, p, &live) || live.bytes_sent != p->length) return 0;
  struct mr_key key;
  reverse(&p->key, &key);
  struct mr_start start = {.zero = p->acked, .first = p->seq, .known = 1};
  bpf_map_update_elem(&mr_starts, &key, &start, BPF_ANY);
  return 0;
}

/* To this host, where it is D_{j-1}. Each connection is looked at once. */
checked_once int start_ingress(struct __sk_buff *skb, struct packet *p) {
  if (!p) return 0;
  if ((p->flags & (TCP_SYN | TCP_RST | TCP_ACK)) != TCP_ACK) return 0;
  struct mr_key key;
  reverse(&p->key, &key);
  __u32 place, is = look_place(&key, &place), *looked = bpf_map_lookup_elem(&mr_looked, &place);
  if (!looked || *looked == is) return 0;
  struct live live = {};
  if (!bpf_map_lookup_elem(&mr_starts, &key)) {
    if (look_up(skb, &p->key, p->v6, &live)) return 0;
    if (!live.bytes_received && p->seq != live.rcv_nxt) return 0; /* not the first, or none of this connection */
    struct mr_start start = {.zero = p->acked, .first = p->seq, .known = !live.bytes_received};
    bpf_map_update_elem(&mr_starts, &key, &start, BPF_ANY);
  }
  *looked = is;
  return 0;
}

/* The start of a connection whose octets from D_j begin with the number `first`. Both numbers are read at once, as another
 * CPU may be giving the entry to another connection. */
static always_inline int start_known(const struct mr_key *key, __u32 first, __u32 *zero) {
  const struct mr_start *entry = bpf_map_lookup_elem(&mr_starts, key);
  if (!entry) return 0;
  union {
    __u64 both;
    struct {
      __u32 zero, first;
    };
  } start = {.both = *(const volatile __u64 *)&entry->zero};
  if (!entry->known || start.first != first) return 0;
  *zero = start.zero;
  return 1;
}

#endif
