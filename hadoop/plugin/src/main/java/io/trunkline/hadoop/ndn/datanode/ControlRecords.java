package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.write.Inflow;
import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * The records of a control connection. While the body of one is awaited, those behind it are read
 * ahead, as the body itself may come there: it was asked for. Bodies that DataNodes further down
 * have asked for are passed on to them.
 *
 * <p>One thread reads; any thread may close.
 */
final class ControlRecords implements AutoCloseable {
  /**
   * A record of a packet.
   *
   * @param record the record
   * @param body of an inline record that was read ahead; null while it is still on the connection,
   *     and where there is none
   */
  record Item(ControlRecord record, byte[] body) {}

  /** What a record takes in the queue, roughly, beside its head, digests and body. */
  private static final int RECORD_BYTES = 512;

  /** Room for so much of a body is taken at first, and then for as much again as has come. */
  private static final int FIRST_BYTES = 64 << 10;

  private final ControlInput control;
  private final Inflow inflow;
  private final ReadAhead bound = new ReadAhead();
  private final ArrayDeque<Item> ahead = new ArrayDeque<>();

  /** Bodies that have come again for records in the queue, by sequence number. */
  private final Map<Long, byte[]> bodies = new HashMap<>();

  /** The record whose body is being read ahead. */
  private ControlRecord partial;

  private byte[] partialBody;
  private int have;

  /** Sequence number of the newest packet that was handed on. */
  private long newest = -1;

  private boolean asked;

  /**
   * Records from here on.
   *
   * @param control the connection
   * @param inflow the write that it brings
   */
  ControlRecords(ControlInput control, Inflow inflow) {
    this.control = control;
    this.inflow = inflow;
  }

  /**
   * Waits for the next packet's record.
   *
   * @return the record, or null when the connection ends where one would begin
   */
  Item next() throws IOException {
    Item item = ahead.poll();
    if (item != null) {
      bound.give(weight(item));
      byte[] again = bodies.remove(item.record().head().seqno());
      if (again != null) {
        bound.give(again.length + RECORD_BYTES);
      }
      if (again != null && again.length == item.record().head().bodyLength()) {
        // Passed on along with its record, so that those further down have it too.
        item = new Item(ControlRecord.inline(item.record().head()), again);
      }
    }
    while (item == null) {
      if (partial == null && !decode(true)) {
        return null;
      }
      if (partial.kind() == ControlRecord.AGAIN || partialBody != null) {
        fill(true);
        item = sorted(whole());
        if (item != null) {
          bound.give(weight(item));
        }
      } else {
        item = new Item(partial, null);
        partial = null;
      }
    }
    newest = Math.max(newest, item.record().head().seqno());
    return item;
  }

  /**
   * Asks for the bodies from a packet on, once a connection: all that follow come along.
   *
   * @param seqno the packet's sequence number
   * @return false when they were asked for before
   */
  boolean ask(long seqno) throws IOException {
    if (asked) {
      return false;
    }
    asked = true;
    inflow.askUpstream(seqno);
    return true;
  }

  /** Whether bodies were asked for. */
  boolean asked() {
    return asked;
  }

  /**
   * Reads ahead what has come, without waiting, to see whether a body has come again.
   *
   * @param seqno sequence number of the packet whose record was handed on last
   * @return the body, or null when it is not there
   */
  byte[] cameAgain(long seqno) throws IOException {
    byte[] body = bodies.remove(seqno);
    if (body != null) {
      bound.give(body.length + RECORD_BYTES);
      return body;
    }
    while ((partial != null || decode(false)) && fill(false)) {
      Item item = whole();
      ControlRecord record = item.record();
      if (record.kind() == ControlRecord.AGAIN && record.head().seqno() == seqno) {
        bound.give(weight(item));
        return item.body();
      }
      item = sorted(item);
      if (item != null) {
        ahead.add(item);
      }
    }
    return null;
  }

  /** Whether no more bytes will come. */
  boolean hasEnded() throws IOException {
    return control.hasEnded();
  }

  /** Reads as much as wanted of an inline body that is still on the connection. */
  int read(byte[] to, int off, int length) throws IOException {
    return control.read(to, off, length);
  }

  /** Returns false when there is no whole record, or, if it waits, no record any more. */
  private boolean decode(boolean waits) throws IOException {
    while ((partial = ControlRecord.decode(control.buffer())) == null) {
      if (!(waits ? control.more() : control.poll())) {
        if (waits && control.buffer().hasRemaining()) {
          throw new EOFException("connection ended in a control record");
        }
        return false;
      }
    }
    return true;
  }

  /** Reads ahead the body of the record at hand. Returns false when it is not whole yet. */
  private boolean fill(boolean waits) throws IOException {
    int length = partial.byName() ? 0 : partial.head().bodyLength();
    if (partialBody == null) {
      int first = Math.min(length, FIRST_BYTES);
      if (!takes(first + weight(partial), waits)) {
        return false;
      }
      partialBody = new byte[first];
      have = 0;
    }
    while (have < length) {
      if (!control.buffer().hasRemaining() && !(waits ? control.more() : control.poll())) {
        if (waits) {
          throw new EOFException("connection ended in a packet");
        }
        return false;
      }
      if (have == partialBody.length) {
        int more = Math.min(length - have, have);
        if (!takes(more, waits)) {
          return false;
        }
        partialBody = Arrays.copyOf(partialBody, have + more);
      }
      have += control.read(partialBody, have, partialBody.length - have);
    }
    return true;
  }

  /** Takes room for so many bytes of the body at hand; throws if it is waited for, without any. */
  private boolean takes(int bytes, boolean waits) throws IOException {
    if (bound.take(bytes)) {
      return true;
    }
    if (waits) {
      int length = partial.head().bodyLength();
      throw new IOException("no room for a body of " + length + " bytes that came again");
    }
    return false;
  }

  private Item whole() {
    Item item = new Item(partial, partialBody);
    partial = null;
    partialBody = null;
    return item;
  }

  private static long weight(Item item) {
    return (item.body() == null ? 0 : item.body().length) + weight(item.record());
  }

  /** Of a record by name up to 255 digests are kept, and heads have fields that nobody knows. */
  private static int weight(ControlRecord record) {
    return RECORD_BYTES + record.head().bytes().length + record.digests().length;
  }

  /**
   * Returns the item if it is a packet's next record, and null when it was a body that came again.
   */
  private Item sorted(Item item) throws IOException {
    ControlRecord record = item.record();
    if (record.kind() != ControlRecord.AGAIN) {
      return item;
    }
    long seqno = record.head().seqno();
    if (seqno < 0) {
      throw new IOException("a body without its packet came again");
    }
    if (seqno > newest) {
      // For a record in the queue. A second body for it replaces the first.
      byte[] before = bodies.put(seqno, item.body());
      bound.give(before == null ? 0 : before.length + RECORD_BYTES);
      bound.give(weight(record) - RECORD_BYTES); // the record itself is not kept
    } else {
      bound.give(weight(item));
      inflow.again(record.head(), item.body());
    }
    return null;
  }

  @Override
  public void close() {
    bound.close();
  }
}
