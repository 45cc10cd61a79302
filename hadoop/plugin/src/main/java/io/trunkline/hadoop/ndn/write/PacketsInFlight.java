package io.trunkline.hadoop.ndn.write;

import org.apache.hadoop.hdfs.protocol.datatransfer.PacketHeader;
import org.apache.hadoop.util.DataChecksum;

/**
 * What an HDFS writer leaves unacknowledged at most, and so may have to be answered for again.
 *
 * @param count most packets ({@code dfs.client.write.max-packets-in-flight})
 * @param packetBytes size of one, header and checksums included ({@code
 *     dfs.client-write-packet-size})
 */
public record PacketsInFlight(int count, int packetBytes) {
  /** Packets that are on their way between stock code and the connection, beside those counted. */
  private static final int ON_THE_WAY = 4;

  /**
   * The same in segments.
   *
   * @param checksum kind of the packets' checksums
   * @param segmentBytes data bytes a segment
   * @return most segments unacknowledged
   */
  int segments(DataChecksum checksum, int segmentBytes) {
    int chunk = checksum.getBytesPerChecksum();
    // As DFSOutputStream.computePacketChunkSize does it.
    long chunks =
        Math.max(
            1,
            (packetBytes - PacketHeader.PKT_MAX_HEADER_LEN) / (chunk + checksum.getChecksumSize()));
    long segments = (chunks * chunk - 1) / segmentBytes + 1;
    return (int) Math.min(Integer.MAX_VALUE, (count + (long) ON_THE_WAY) * segments);
  }
}
