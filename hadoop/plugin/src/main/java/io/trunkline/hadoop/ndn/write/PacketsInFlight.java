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
    long segments = (dataBytes(checksum) - 1) / segmentBytes + 1;
    return (int) Math.min(Integer.MAX_VALUE, (count + (long) ON_THE_WAY) * segments);
  }

  /**
   * Data bytes of a packet, as DFSOutputStream.computePacketChunkSize has them.
   *
   * @param checksum kind of the packets' checksums
   * @return bytes
   */
  long dataBytes(DataChecksum checksum) {
    int chunk = checksum.getBytesPerChecksum();
    int body = packetBytes - PacketHeader.PKT_MAX_HEADER_LEN;
    return Math.max(1, body / (chunk + checksum.getChecksumSize())) * (long) chunk;
  }
}
