# Runs in the guest: a Soft-RoCE NIC on a dummy Ethernet, two processes that speak verbs over it, and the plug-in's own
# test of its byte streams over UCX. $1 is the class path of that test, empty where there is no UCX.
# Each check prints `ok NAME` or `FAILED NAME: why`; the lab counts these lines.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
address=10.9.0.1
rounds=20

check() {
  name=$1
  shift
  if "$@" >/run/check.log 2>&1; then
    echo "ok $name"
  else
    echo "FAILED $name: status $?: $(tail -n 3 /run/check.log | tr '\n' ' ')"
  fi
}

nic() {
  ip link set lo up &&
    ip link add d0 type dummy &&
    ip addr add $address/24 dev d0 &&
    ip link set d0 mtu 9000 up &&
    rdma link add rxe0 type rxe netdev d0 &&
    rdma link show rxe0/1 | grep 'state ACTIVE'
}

# Waits up to $1 seconds for a command to succeed. An emulated guest on a busy host can be many times slower than
# this one, so whatever comes about by itself is waited for and never slept for.
within() {
  tries=$(($1 * 10))
  shift
  while ! "$@"; do
    [ $((tries -= 1)) -gt 0 ] || return 1
    sleep 0.1
  done
}

listening() {
  rdma resource show cm_id 2>/dev/null | grep -q 'state LISTEN'
}

# Each round is an RDMA read and an RDMA write by the far end, whose contents rping compares (-V) and shows (-v). Its
# status is no use: the side that hears of the other's end before its own calls that an error.
rdma_ping() {
  rping -s -a $address -C $rounds -V >/run/server.log 2>&1 &
  server=$!
  within 10 listening
  timeout 30 rping -c -a $address -C $rounds -V -v >/run/client.log 2>&1
  wait $server
  cat /run/client.log
  [ "$(grep -c '^ping data: ' /run/client.log)" = $rounds ] && ! grep -i mismatch /run/client.log /run/server.log
}

sent() {
  cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
}

sent_at_least() {
  [ "$(sent)" -ge "$1" ]
}

ended() {
  ! kill -0 "$1" 2>/dev/null
}

# A peer that is killed in mid-stream is noticed: its queue pair goes, the survivor ends by itself.
peer_killed() {
  rping -s -a $address -V >/run/server.log 2>&1 &
  server=$!
  if ! within 20 listening; then
    echo "nobody listens"
    kill -KILL $server
    return 1
  fi
  before=$(sent)
  rping -c -a $address -V >/run/client.log 2>&1 &
  client=$!
  if ! within 20 sent_at_least $((before + 4 * rounds)); then
    echo "no stream came about: $(tail -n 1 /run/client.log)"
    kill -KILL $client $server
    return 1
  fi
  kill -KILL $client
  wait $client 2>/dev/null
  if ! within 30 ended $server; then
    echo "the survivor went on: $(tail -n 1 /run/server.log)"
    kill -KILL $server
    return 1
  fi
}

check "a Soft-RoCE NIC comes up" nic
before=$(sent)
check "RDMA reads and writes between two processes, contents verified" rdma_ping
check "they went over the NIC" test $(($(sent) - before)) -ge $((4 * rounds))
check "a killed peer is noticed" peer_killed

[ -n "$1" ] || exit 0

# Nothing but verbs: reliable connections over this NIC, so neither TCP nor shared memory can carry a byte.
before=$(sent)
ulimit -l unlimited
UCX_TLS=rc UCX_NET_DEVICES=rxe0:1 timeout 150 \
  java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m -cp "$1" \
  io.trunkline.hadoop.ucx.SelfTest all --address $address --wake-check-ms 5 --patience 3 --bytes $((2 << 20)) \
  2>/run/selftest.err | tee /run/selftest.log
grep -q '^SELFTEST PASS' /run/selftest.log ||
  echo "FAILED the plug-in's byte streams over verbs: $(tail -n 3 /run/selftest.err | tr '\n' ' ')"
check "the plug-in's bytes went over the NIC" test $(($(sent) - before)) -ge 4096 # 16 MiB and more, by 4 KiB at most
