package io.trunkline.hadoop.ndn.wire;

import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import java.security.DigestException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * What binds the segments of a packet to the write that made them: of each the first 16 bytes of
 * the SHA-256 of its header and checksums, which cover its data. A block's name can come again, and
 * caches may hold what it stood for before; a segment of another digest is not taken.
 *
 * <p>Not for more than one thread at a time.
 */
public final class SegmentDigests {
  /** Length of one digest. */
  public static final int BYTES = 16;

  private final MessageDigest sha256;
  private final byte[] header = new byte[SegmentHeader.BYTES];
  private final byte[] whole = new byte[32];

  /** Makes digests. */
  public SegmentDigests() {
    try {
      sha256 = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  /**
   * The digests of a packet's segments.
   *
   * @param cut how the packet is cut
   * @param body array with the packet's body
   * @param off where the body begins
   * @return the digests, one after the other
   */
  public byte[] of(SegmentCut cut, byte[] body, int off) {
    byte[] digests = new byte[cut.count() * BYTES];
    for (int i = 0; i < cut.count(); i++) {
      Piece piece = cut.piece(i);
      piece.header().encode(header);
      sha256.update(header);
      sha256.update(body, off + piece.sumsAt(), piece.sumsLength());
      try {
        sha256.digest(whole, 0, whole.length);
      } catch (DigestException e) {
        throw new IllegalStateException("SHA-256 has 32 bytes", e);
      }
      System.arraycopy(whole, 0, digests, i * BYTES, BYTES);
    }
    return digests;
  }
}
