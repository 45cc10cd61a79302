package io.trunkline.hadoop.transport;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Datagrams by which a client asks a DataNode how one of its transports is reached. They go to the
 * UDP port of the same number as the DataNode's stock TCP one, which is all that a client knows.
 *
 * <pre>
 *   question: magic "TRKQ" (4) | version 1 (1) | nonce (8) | length (1) | transport | zeros to 512
 *   answer:   magic "TRKA" (4) | version 1 (1) | nonce (8) | {@link DataNodeRecord}, 499 at most
 * </pre>
 *
 * Numbers are big-endian. An answer is never longer than its question, so that nobody can have a
 * DataNode flood a third party.
 */
final class RecordWire {
  /** Bytes of every question, and most bytes of an answer. */
  static final int BYTES = 512;

  private static final int QUESTION = 0x54524B51;
  private static final int ANSWER = 0x54524B41;
  private static final byte VERSION = 1;
  private static final int HEAD_BYTES = 13;
  private static final int MAX_NAME_BYTES = 32;

  private RecordWire() {}

  /** What a question asks for; {@code transport} is null for a datagram that is no question. */
  record Question(String transport, long nonce) {
    static final Question NONE = new Question(null, 0);
  }

  static byte[] question(String transport, long nonce) {
    byte[] name = transport.getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(BYTES)
        .putInt(QUESTION)
        .put(VERSION)
        .putLong(nonce)
        .put((byte) name.length)
        .put(name)
        .array();
  }

  static Question question(ByteBuffer in) {
    if (in.remaining() != BYTES || in.getInt() != QUESTION || in.get() != VERSION) {
      return Question.NONE;
    }
    long nonce = in.getLong();
    int length = in.get() & 0xFF;
    if (length > MAX_NAME_BYTES) {
      return Question.NONE;
    }
    byte[] name = new byte[length];
    in.get(name);
    return new Question(new String(name, StandardCharsets.US_ASCII), nonce);
  }

  /** Shortens the record's reason as far as it must be. */
  static ByteBuffer answer(DataNodeRecord record, long nonce) {
    String reason = record.reason();
    byte[] json = record.encode();
    while (json.length > BYTES - HEAD_BYTES) {
      reason = reason.substring(0, reason.length() / 2);
      json =
          new DataNodeRecord(
                  record.version(),
                  record.served(),
                  record.address(),
                  record.port(),
                  reason + "...",
                  record.secured(),
                  record.split())
              .encode();
    }
    return ByteBuffer.allocate(HEAD_BYTES + json.length)
        .putInt(ANSWER)
        .put(VERSION)
        .putLong(nonce)
        .put(json)
        .flip();
  }

  /** The record in an answer, still encoded; null for a datagram that is not the answer. */
  static byte[] answer(ByteBuffer in, long nonce) throws IOException {
    if (in.remaining() < HEAD_BYTES || in.getInt() != ANSWER) {
      return null;
    }
    byte version = in.get();
    if (in.getLong() != nonce) {
      return null;
    }
    if (version != VERSION) {
      throw new IOException("answer of version " + version + ", this side knows " + VERSION);
    }
    byte[] json = new byte[in.remaining()];
    in.get(json);
    return json;
  }
}
