# Runs in a guest: the tests of mirrored replication's eBPF program, $1, on the guest's kernel and its verifier.
# Further arguments choose among them. What they print is what the lab counts.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
export TRUNKLINE_MIRROR_MUST=1
echo "kernel $(uname -r)"
program=$1
shift
"$program" --color=never --test-threads=2 "$@" 2>&1
