package io.trunkline.hadoop.ndn;

import io.trunkline.hadoop.library.NativeLibrary;
import java.io.IOException;

/**
 * The face of the native named-data library ({@code libtrunkline_native.so}), one method a verb.
 *
 * <p>Handles are opaque non-zero longs. A handle that was closed, or never given out, is answered
 * with {@link ClosedException}, never with a crash. Every method may be called from any thread; two
 * calls on one handle may overlap, and a close wakes a call that waits on the same handle, which
 * then throws {@link ClosedException}. A method that waits past its time throws {@link
 * java.net.SocketTimeoutException} unless its description says that it returns a value then.
 *
 * <p>Only {@link NativeLibrary} loads the library; nothing here may be called before {@link
 * NativeLibrary#load}.
 */
public final class Native {
  private Native() {}

  /**
   * Starts a forwarder with its own thread.
   *
   * @param json {@code face}, {@code root}, {@code local_address}, {@code dscp} (of the face),
   *     {@code listen} (a list), {@code cs_bytes}, {@code pit_entries}, {@code retain_bytes},
   *     {@code pull_bytes}, {@code name}; all but {@code root} may be absent
   * @return the node's handle
   * @throws IOException when the configuration or a listener is refused
   */
  public static native long nodeOpen(String json) throws IOException;

  /**
   * Stops the forwarder and all that was opened on it.
   *
   * @param node the node's handle
   */
  public static native void nodeClose(long node);

  /**
   * The state of a node as JSON: faces with their counters and whether they are up, content store
   * hits and misses, PIT entries, producer and puller counters.
   *
   * @param node the node's handle
   * @return a JSON object
   * @throws IOException when the node is closed
   */
  public static native String nodeStatus(long node) throws IOException;

  /**
   * Whether a node's face to the router is up.
   *
   * @param node the node's handle
   * @return false without one
   * @throws IOException when the node is closed
   */
  public static native boolean routerUp(long node) throws IOException;

  /**
   * Reads the scalars of a JSON object as {@link io.trunkline.hadoop.conf.Json#scalars(byte[])}
   * does. The library behind that costs a short command some 30 ms of processor time to load.
   *
   * @param json JSON in UTF-8
   * @return names and values by turns
   * @throws IOException when that is no JSON object
   */
  public static native String[] scalars(byte[] json) throws IOException;

  /**
   * Opens a producer of segments below one name; the name is registered toward the router.
   *
   * @param node the node's handle
   * @param prefix URI of the versioned name, without segment
   * @param segmentBytes data bytes of a segment, at most
   * @param retainSegments how many of the newest segments stay answerable
   * @param key what they are sealed with, null when they are not; one producer of a kind for a key
   * @param kind 0 for the block's segments, 1 for the writer's stream; with a key only
   * @return the producer's handle
   * @throws NoRoomException when the node's bound for kept segments is reached
   * @throws IOException when the name is no name or the node is closed
   */
  public static native long producerOpen(
      long node, String prefix, int segmentBytes, int retainSegments, byte[] key, int kind)
      throws IOException;

  /**
   * Publishes one segment; its content is header, checksums, data. Sealed or signed on the calling
   * thread. With a key, segments are published in rising order.
   *
   * @param producer the producer's handle
   * @param segment number of the segment
   * @param header the 24-byte segment header
   * @param body array that holds checksums and data
   * @param sumsAt where the checksums begin in {@code body}
   * @param sumsLength length of the checksums in bytes
   * @param dataAt where the data begins in {@code body}
   * @param dataLength length of the data in bytes
   * @param more whether another call follows at once, so that this segment may wait for it before
   *     it leaves
   * @param digests where the segment's digest of 16 bytes goes, or null
   * @param digestAt where in {@code digests}
   * @throws IOException when the producer or its node is closed
   */
  public static native void producerPublish(
      long producer,
      long segment,
      byte[] header,
      byte[] body,
      int sumsAt,
      int sumsLength,
      int dataAt,
      int dataLength,
      boolean more,
      byte[] digests,
      int digestAt)
      throws IOException;

  /**
   * Copies out a segment that is still kept.
   *
   * @param producer the producer's handle
   * @param segment number of the segment
   * @param dst where checksums and data go
   * @param sumsAt where in {@code dst} the checksums go
   * @param sumsLength length of the checksums in bytes
   * @param dataAt where in {@code dst} the data goes
   * @param dataLength length of the data in bytes
   * @return false when it is not kept any more
   * @throws IOException when the segment has other lengths
   */
  public static native boolean producerKept(
      long producer,
      long segment,
      byte[] dst,
      int sumsAt,
      int sumsLength,
      int dataAt,
      int dataLength)
      throws IOException;

  /**
   * Says that all consumers have the segments up to one: they are let go.
   *
   * @param producer the producer's handle
   * @param upto number of the newest segment that all have
   */
  public static native void producerAcknowledge(long producer, long upto);

  /**
   * Ends a producer. Its segments stay answerable for a while, so that a consumer which lags is
   * still served.
   *
   * @param producer the producer's handle
   * @param lingerMs how long the segments stay, in milliseconds; 0 drops them at once
   */
  public static native void producerClose(long producer, long lingerMs);

  /**
   * Opens a consumer of segments below one name.
   *
   * @param node the node's handle
   * @param prefix URI of the versioned name, without segment
   * @param segmentBytes data bytes of a segment, at most
   * @param firstSegment number of the first segment to ask for
   * @param window most Interests in flight
   * @param live whether the stream is being made: an unanswered Interest past the last known
   *     segment is then no loss
   * @param last number of the last segment, or -1 when it is not known
   * @param key what they are sealed with, null when they are not
   * @param kind as for {@link #producerOpen}
   * @return the consumer's handle
   * @throws IOException when the name is no name or the node is closed
   */
  public static native long pullOpen(
      long node,
      String prefix,
      int segmentBytes,
      long firstSegment,
      int window,
      boolean live,
      long last,
      byte[] key,
      int kind)
      throws IOException;

  /**
   * Says that all segments up to this one surely exist, so that a missing one is a loss.
   *
   * @param pull the consumer's handle
   * @param upto number of the newest segment known to exist
   */
  public static native void pullKnown(long pull, long upto);

  /**
   * Waits for one segment, copies it out and verifies the copy by the node's {@code verify}.
   * Segments are taken in rising order; numbers may be skipped, never taken again. Unless this
   * returns a length, whatever lies where the body goes is void.
   *
   * @param pull the consumer's handle
   * @param segment number of the segment
   * @param header where the 24-byte segment header goes
   * @param dst where the body goes
   * @param off where in {@code dst} it goes
   * @param max most bytes that the body may have; more is refused with {@link NdnException}
   * @param digest array with the segment's digest, null to take whatever verifies; one of another
   *     digest is asked for past the caches
   * @param digestAt where in {@code digest} its 16 bytes begin
   * @param timeoutMs how long to wait, in milliseconds
   * @return length of the body in bytes, or -1 when the time passed
   * @throws UnverifiedException when it does not verify however often it is asked for
   * @throws IOException when the stream failed or was closed
   */
  public static native int pullTake(
      long pull,
      long segment,
      byte[] header,
      byte[] dst,
      int off,
      int max,
      byte[] digest,
      int digestAt,
      int timeoutMs)
      throws IOException;

  /**
   * As {@link #pullTake}, for a segment whose lengths are known and whose checksums and data go to
   * two places. One of other lengths is refused with {@link NdnException}. Unless this returns
   * true, whatever lies in those places is void.
   *
   * @param pull the consumer's handle
   * @param segment number of the segment
   * @param header where the 24-byte segment header goes
   * @param dst where checksums and data go
   * @param sumsAt where in {@code dst} the checksums go
   * @param sumsLength length of the checksums in bytes
   * @param dataAt where in {@code dst} the data goes
   * @param dataLength length of the data in bytes
   * @param digest as for {@link #pullTake}
   * @param digestAt as for {@link #pullTake}
   * @param timeoutMs how long to wait, in milliseconds
   * @return false when the time passed
   * @throws UnverifiedException when it does not verify however often it is asked for
   * @throws IOException when the stream failed or was closed
   */
  public static native boolean pullTakePiece(
      long pull,
      long segment,
      byte[] header,
      byte[] dst,
      int sumsAt,
      int sumsLength,
      int dataAt,
      int dataLength,
      byte[] digest,
      int digestAt,
      int timeoutMs)
      throws IOException;

  /**
   * Ends a consumer; a thread that waits in {@link #pullTake} gets an exception.
   *
   * @param pull the consumer's handle
   */
  public static native void pullClose(long pull);

  /**
   * Fetches one Data packet.
   *
   * @param node the node's handle
   * @param name URI of the name
   * @param mustBeFresh whether a stale answer out of a cache will not do
   * @param canBePrefix whether a longer name will do
   * @param rejected whether what came last was not genuine: routers ask past whoever it came from
   * @param timeoutMs how long to wait, in milliseconds
   * @return the content, or null when nobody answered in time or a Nack came
   * @throws IOException when the name is no name or the node is closed
   */
  public static native byte[] fetch(
      long node,
      String name,
      boolean mustBeFresh,
      boolean canBePrefix,
      boolean rejected,
      int timeoutMs)
      throws IOException;

  /**
   * Fetches what is known of a block and unpacks it, and the digests of its segments, past the
   * caches if they hold others than it tells of.
   *
   * @param node the node's handle
   * @param name URI of the block's name with {@code 32=metadata}
   * @param manifest its first element becomes the digests, one after the other; it stays null when
   *     nobody has them, or the block has no checksums
   * @param timeoutMs how long to wait for each packet, in milliseconds
   * @return generation stamp, length, data bytes of a segment, number of the checksum's type and
   *     data bytes that one covers, -1 for what is too large; null when nobody answered in time or
   *     a Nack came
   * @throws IOException when the name is no name, the answer is malformed or the node is closed
   */
  public static native long[] blockMetadata(
      long node, String name, byte[][] manifest, int timeoutMs) throws IOException;

  /**
   * Asks for what the segments of a guarded block are sealed with.
   *
   * @param node the node's handle
   * @param version URI of the block's versioned name
   * @param identifier that of a block token
   * @param password the token's; it does not leave this process
   * @param key its first element becomes the key's id, as it stands in names, its second one the
   *     key
   * @param timeoutMs how long to wait, in milliseconds
   * @return numbers as of {@link #blockMetadata}; null when nobody answered in time, or nobody
   *     gives the key to who has this token
   * @throws IOException when the name is no name, the token is none, the answer is not of who knows
   *     the token, or the node is closed
   */
  public static native long[] contentKey(
      long node, String version, byte[] identifier, byte[] password, byte[][] key, int timeoutMs)
      throws IOException;

  /**
   * Publishes one Data packet until {@link #unpublish}; the name is registered toward the router.
   *
   * @param node the node's handle
   * @param name URI of the name
   * @param content its content
   * @param freshnessMs how long caches may answer with it as fresh, in milliseconds
   * @return a handle for {@link #unpublish}
   * @throws IOException when the name is no name or the node is closed
   */
  public static native long publishStatic(long node, String name, byte[] content, long freshnessMs)
      throws IOException;

  /**
   * Withdraws what {@link #publishStatic} published.
   *
   * @param handle what it returned
   */
  public static native void unpublish(long handle);

  /**
   * Opens a source of finalized replicas below one name: the library reads block files by itself
   * once it has been told where they lie.
   *
   * @param node the node's handle
   * @param blocksPrefix URI of {@code /<root>/blocks}
   * @param segmentBytes data bytes a segment
   * @param maxOpenFiles most replicas whose files are kept open
   * @param guarded whether segments are served sealed, and nothing else but their keys to who
   *     proves to have a block token
   * @return the source's handle
   * @throws IOException when the name is no name or the node is closed
   */
  public static native long blockSourceOpen(
      long node, String blocksPrefix, int segmentBytes, int maxOpenFiles, boolean guarded)
      throws IOException;

  /**
   * Waits for the next replica that somebody asked for and whose files are not known.
   *
   * @param source the source's handle
   * @param timeoutMs how long to wait, in milliseconds
   * @return {@code "<pool> <block> <genstamp>"}, genstamp -1 when metadata is asked; where blocks
   *     are guarded with {@code " write"} behind when the key of its write is wanted, {@code " key
   *     <serial>"} for what is made with that block key (serial number without a sign), {@code "
   *     token <identifier in hex>"} for both, if that token may read; null when the time passed
   * @throws IOException when the source is closed
   */
  public static native String blockSourceNext(long source, int timeoutMs) throws IOException;

  /**
   * Answers a request of {@link #blockSourceNext}.
   *
   * @param source the source's handle
   * @param request the request as it came
   * @param blockPath path of the block file, or null when there is no such finalized replica
   * @param metaPath path of its checksum file
   * @param length length of the replica in bytes
   * @param genstamp generation stamp of the replica
   */
  public static native void blockSourceAnswer(
      long source, String request, String blockPath, String metaPath, long length, long genstamp);

  /**
   * Answers a request of {@link #blockSourceNext} where blocks are guarded; refused as by {@link
   * #blockSourceAnswer} with null. The library checks that who asks for a key has the password.
   *
   * @param source the source's handle
   * @param request the request as it came
   * @param blockPath path of the block file
   * @param metaPath path of its checksum file
   * @param length length of the replica in bytes
   * @param genstamp generation stamp of the replica
   * @param writeKey key of its write, null when it is not known
   * @param writeSegmentBytes data bytes of the write's segments
   * @param writeSegments how many segments of the block the write has sealed, from the first one on
   * @param writeDigest SHA-256 over their digests
   * @param serial serial number of the block key that {@code secret} is made with
   * @param secret made for this pool and block; null for none
   * @param password the token's, null when none was asked about
   * @throws IOException when an argument is out of bounds
   */
  public static native void blockSourceAnswerGuarded(
      long source,
      String request,
      String blockPath,
      String metaPath,
      long length,
      long genstamp,
      byte[] writeKey,
      int writeSegmentBytes,
      long writeSegments,
      byte[] writeDigest,
      int serial,
      byte[] secret,
      byte[] password)
      throws IOException;

  /**
   * Forgets what was answered for a block: it is being appended to, moved or deleted.
   *
   * @param source the source's handle
   * @param pool block pool
   * @param block block id
   */
  public static native void blockSourceInvalidate(long source, String pool, long block);

  /**
   * Ends a source; a {@link #blockSourceNext} that waits on it throws.
   *
   * @param source the source's handle
   */
  public static native void blockSourceClose(long source);
}
