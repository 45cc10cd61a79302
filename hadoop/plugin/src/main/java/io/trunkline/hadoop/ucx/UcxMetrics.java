package io.trunkline.hadoop.ucx;

/**
 * What a {@link UcxNode} holds and has done.
 *
 * @param registeredBytes memory that we have registered with UCX now, never above
 *     trunkline.ucx.pool.bytes
 * @param pooledBytesInUse of these, bytes of buffers that hold or wait for data
 * @param unpooledBytes bytes now in buffers beside the pool, of streams that would stand still
 *     without one: at most a message for each stream and direction, 0 while the pool has buffers
 * @param endpointsOpen connections to peers now, made by us and by them
 * @param endpointsConnected connections made by us so far; a stream opened without growth of this
 *     one used a connection that was there
 * @param endpointsAccepted connections made by peers so far
 * @param endpointsFailed connections that ended by an error so far
 * @param streamsOpen streams now
 * @param streamsOpened streams opened by us so far
 * @param streamsAccepted streams opened by peers so far
 * @param streamsRefused streams that we or our peers refused so far
 * @param bytesSent payload bytes handed to UCX so far
 * @param bytesReceived payload bytes read so far
 * @param eagerSent messages sent eagerly so far
 * @param rendezvousSent messages sent by rendezvous so far
 * @param poolWaits times that a stream found the pool empty
 * @param framesRefused frames of peers that fit no stream or broke the rules
 * @param wakeups times that a worker slept, and was woken or looked by itself
 */
public record UcxMetrics(
    long registeredBytes,
    long pooledBytesInUse,
    long unpooledBytes,
    long endpointsOpen,
    long endpointsConnected,
    long endpointsAccepted,
    long endpointsFailed,
    long streamsOpen,
    long streamsOpened,
    long streamsAccepted,
    long streamsRefused,
    long bytesSent,
    long bytesReceived,
    long eagerSent,
    long rendezvousSent,
    long poolWaits,
    long framesRefused,
    long wakeups) {}
