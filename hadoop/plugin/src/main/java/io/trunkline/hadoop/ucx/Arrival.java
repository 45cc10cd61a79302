package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;

/**
 * A message of a stream at its receiver.
 *
 * <pre>
 *   HELD --receive--> RECEIVING --done--> READY --read--> gone
 *   eager messages and the end of the stream begin as READY
 * </pre>
 */
final class Arrival {
  /** How far it has come. */
  enum State {
    /** A rendezvous that we have not answered: the bytes are at the sender. */
    HELD,
    /** UCX moves the bytes. */
    RECEIVING,
    /** The bytes are here. */
    READY
  }

  final long sequence;
  final int length;
  final boolean end;

  /** UCX's name of a HELD one. */
  final long descriptor;

  State state;

  /** Nobody wants it any more. */
  boolean abandoned;

  /** Where the bytes are, null when on the heap. */
  PooledBuffer buffer;

  /** The bytes not read yet, of a READY one. */
  ByteBuffer data;

  private Arrival(long sequence, int length, boolean end, long descriptor, State state) {
    this.sequence = sequence;
    this.length = length;
    this.end = end;
    this.descriptor = descriptor;
    this.state = state;
  }

  /** A rendezvous. */
  static Arrival held(long sequence, int length, long descriptor) {
    return new Arrival(sequence, length, false, descriptor, State.HELD);
  }

  /** An eager message; buffer is null when data is on the heap. */
  static Arrival ready(long sequence, ByteBuffer data, PooledBuffer buffer) {
    Arrival arrival = new Arrival(sequence, data.remaining(), false, 0, State.READY);
    arrival.data = data;
    arrival.buffer = buffer;
    return arrival;
  }

  /** The end of the stream. */
  static Arrival end(long sequence) {
    return new Arrival(sequence, 0, true, 0, State.READY);
  }

  /** The bytes of a READY one move to the heap, where they may stay however long. */
  void leavePool() {
    if (buffer != null) {
      ByteBuffer copy = ByteBuffer.allocate(data.remaining()).put(data).flip();
      release();
      data = copy;
    }
  }

  /** Memory goes back; UCX must be done with it. */
  void release() {
    data = null;
    if (buffer != null) {
      buffer.release();
      buffer = null;
    }
  }
}
