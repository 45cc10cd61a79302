"""How sampled stacks become communication, processing and I/O, and which packet a sweep recommends."""

import pytest

from trunkline_lab import hdfs_split, packet_sweep, profiler

DATANODE = "org/apache/hadoop/hdfs/server/datanode/"
RECEIVER = f"[DataXceiver [Receiving a;b] tid=1];{DATANODE}DataXceiver.run;{DATANODE}BlockReceiver.receiveBlock"
STREAMER = "org/apache/hadoop/hdfs/DataStreamer"
SAMPLES = f"""\
{RECEIVER};{DATANODE}BlockReceiver.receivePacket;org/apache/hadoop/net/SocketInputStream.read;sun/nio/ch/IOUtil.read 40
{RECEIVER};{DATANODE}BlockReceiver.receivePacket;io/trunkline/hadoop/ucx/UcxChannel.read;java/lang/Unsafe.park 20
{RECEIVER};{DATANODE}BlockReceiver.receivePacket;org/apache/hadoop/util/DataChecksum.verify;libhadoop.so 8
{RECEIVER};{DATANODE}FileIoProvider$Out.write;java/io/FileOutputStream.writeBytes;write;vfs_write_[k] 10
{RECEIVER};{DATANODE}BlockReceiver$PacketResponder.close;java/lang/Object.wait 2
[PacketResponder tid=2];{DATANODE}BlockReceiver$PacketResponder.run;org/apache/hadoop/net/SocketOutputStream.write 6
[trunkline-ucx-0 tid=3];java/lang/Thread.run;io/trunkline/hadoop/ucx/IoWorker.run;ucp_worker_progress 12
[C2 CompilerThread0 tid=4];CompileBroker::compiler_thread_loop;java/io/FileInputStream.read 30
[ndn-trunkline-4 tid=5];ndn_io::driver::turn;write 4
[DataStreamer tid=6];{STREAMER}.sendPacket;io/trunkline/hadoop/ndn/Native.producerPublish;crc32c;libc.so.6 8
[VM Thread tid=7];G1CollectedHeap::collect 2
"""


def test_a_receiving_threads_time_is_told_apart_by_the_innermost_frame_that_says_something():
    split = hdfs_split.of_receivers(profiler.parse(SAMPLES, 5))
    assert split == pytest.approx({"communication": 0.31, "processing": 0.04, "io": 0.05})


def test_a_process_also_has_other_threads_and_a_rest_that_moves_no_file():
    split = hdfs_split.of_process(profiler.parse(SAMPLES, 5))
    named = {hdfs_split.LIBRARY: 0.04, hdfs_split.FORWARDER: 0.02}
    others = {"compiling": 0.15, "rest": 0.01}
    assert split == pytest.approx({"communication": 0.4, "processing": 0.04, "io": 0.05} | named | others)
    assert hdfs_split.added([split, split])["rest"] == pytest.approx(0.02)


def test_samples_that_miss_what_was_counted_are_no_result():
    hdfs_split.check("cpu", 0.9, 1.0)
    with pytest.raises(RuntimeError, match=r"saw 0\.80 s of 1\.00 s"):
        hdfs_split.check("cpu", 0.8, 1.0)


def test_the_smallest_packet_that_is_as_quick_as_any_is_recommended():
    assert packet_sweep.recommended({64: 4.5, 128: 3.9, 256: 3.42, 512: 3.3, 1024: 3.31}) == 256
    assert packet_sweep.recommended({64: 3.0, 512: 2.99}) == 64


def test_a_sweep_is_of_the_planes_whose_figures_are_wanted():
    assert packet_sweep.planes_of("hdfs.packets.tcp.64k") == ["tcp"]
    assert packet_sweep.planes_of("hdfs.packets.ndn") == ["ndn"]
