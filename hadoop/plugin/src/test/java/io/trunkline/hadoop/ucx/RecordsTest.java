package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Framing, over two ways that take and give as little as they like at a time. */
class RecordsTest {
  private static final int SMALL = 100;

  @TempDir Path directory;

  /** A way for bytes that moves a random part at a time, often nothing. */
  private static final class Way {
    private final Random random;
    private final ByteBuffer bytes = ByteBuffer.allocate(1 << 20);
    private int read;
    private boolean ended;
    private int writes;

    Way(Random random) {
      this.random = random;
    }

    private int some(int most) {
      return switch (random.nextInt(4)) {
        case 0 -> 0;
        case 1 -> Math.min(most, 1 + random.nextInt(3));
        default -> most;
      };
    }

    int put(ByteBuffer from) throws IOException {
      return Records.moveAtMost(some(from.remaining()), from, this::putAll);
    }

    private int putAll(ByteBuffer from) {
      int count = from.remaining();
      bytes.put(from);
      return count;
    }

    long put(ByteBuffer[] from) throws IOException {
      writes++;
      long total = 0;
      for (ByteBuffer each : from) {
        total += put(each);
        if (each.hasRemaining()) {
          break;
        }
      }
      return total;
    }

    int put(FileChannel file, long position, int count) throws IOException {
      int most = some(count);
      bytes.limit(bytes.position() + most);
      int read = most == 0 ? 0 : file.read(bytes, position);
      bytes.limit(bytes.capacity());
      return read;
    }

    int take(ByteBuffer to) {
      int here = bytes.position() - read;
      if (here == 0) {
        return ended ? -1 : 0;
      }
      int count = some(Math.min(here, to.remaining()));
      to.put(bytes.array(), read, count);
      read += count;
      return count;
    }
  }

  private final Random random = new Random();
  private Way tcp;
  private Way ucx;
  private RecordsOut out;
  private RecordsIn in;

  private void open(long seed) {
    random.setSeed(seed);
    tcp = new Way(random);
    ucx = new Way(random);
    out = new RecordsOut(tcp::put, ucx::put, ucx::put, SMALL);
    in = new RecordsIn(tcp::take, ucx::take);
  }

  private byte[] bytes(int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  @Test
  void whatWasWrittenIsReadInOrderHoweverItIsCut() throws IOException {
    Path path = Files.write(directory.resolve("file"), new byte[] {1});
    for (int seed = 0; seed < 500; seed++) {
      open(seed);
      byte[] content = bytes(random.nextInt(20_000));
      Files.write(path, content);
      ByteBuffer got = ByteBuffer.allocate(content.length + 1);
      try (FileChannel file = FileChannel.open(path)) {
        int written = 0;
        while (got.position() < content.length) {
          if (written < content.length && random.nextBoolean()) {
            int most = random.nextBoolean() ? 2 * SMALL : 3000;
            int count = Math.min(content.length - written, 1 + random.nextInt(most));
            written +=
                random.nextInt(4) == 0
                    ? out.write(file, written, count)
                    : out.write(ByteBuffer.wrap(content, written, count));
          } else {
            got.limit(got.position() + 1 + random.nextInt(content.length + 1 - got.position()));
            int before = got.position();
            assertEquals(in.read(got), got.position() - before);
            got.limit(got.capacity());
          }
        }
      }
      assertArrayEquals(content, java.util.Arrays.copyOf(got.array(), content.length), "" + seed);
      tcp.ended = true;
      int end;
      do {
        end = in.read(got);
      } while (end == 0);
      assertEquals(-1, end);
      assertEquals(ucx.bytes.position(), ucx.read);
    }
  }

  /** A way that moves all at once. */
  private void openWide() {
    open(0);
    tcp =
        new Way(
            new Random() {
              private static final long serialVersionUID = 1L;

              @Override
              public int nextInt(int bound) {
                return bound - 1;
              }
            });
    ucx = new Way(tcp.random);
    out = new RecordsOut(tcp::put, ucx::put, ucx::put, SMALL);
    in = new RecordsIn(tcp::take, ucx::take);
  }

  @Test
  void aSmallMessageIsOneCallAndALargeOneGoesByUcx() throws IOException {
    openWide();
    assertEquals(SMALL - 1, out.write(ByteBuffer.allocate(SMALL - 1)));
    assertEquals(1, tcp.writes);
    assertEquals(Records.HEAD_BYTES + SMALL - 1, tcp.bytes.position());
    assertEquals(0, ucx.bytes.position());
    assertEquals(SMALL, out.write(ByteBuffer.allocate(SMALL)));
    assertEquals(2 * Records.HEAD_BYTES + SMALL - 1, tcp.bytes.position());
    assertEquals(SMALL, ucx.bytes.position());
    assertFalse(out.waitsForUcx());
    assertEquals(10, in.read(ByteBuffer.allocate(10)));
    assertTrue(in.pending(), "it has read ahead");
    assertEquals(SMALL - 11, in.read(ByteBuffer.allocate(SMALL)), "UCX is a read of its own");
    assertTrue(in.waitsForUcx());
    assertFalse(in.pending());
    assertEquals(SMALL, in.read(ByteBuffer.allocate(1000)));
    assertFalse(in.waitsForUcx());
    assertEquals(0, in.read(ByteBuffer.allocate(1)));
  }

  private void refused(int... words) {
    openWide();
    for (int word : words) {
      tcp.bytes.putInt(word);
    }
    tcp.ended = true;
    ByteBuffer to = ByteBuffer.allocate(100);
    assertThrows(
        IOException.class,
        () -> {
          while (in.read(to) >= 0) {}
        });
  }

  @Test
  void whatIsMalformedOrEndsEarlyIsRefused() {
    refused(0);
    refused(Records.BY_UCX);
    refused(Records.MAX_SMALL_BYTES + 1);
    refused(Integer.MAX_VALUE);
    refused(8, 1);
    refused(5, 1);
    openWide();
    tcp.bytes.put((byte) 0);
    tcp.ended = true;
    assertThrows(IOException.class, () -> in.read(ByteBuffer.allocate(1)));
    openWide();
    tcp.bytes.putInt(Records.BY_UCX | 5);
    ucx.bytes.putInt(1);
    ucx.ended = true;
    ByteBuffer to = ByteBuffer.allocate(100);
    assertThrows(IOException.class, () -> in.read(to.limit(in.read(to) + 5)));
  }

  @Test
  void aFileThatIsTooShortIsToldSo() throws IOException {
    openWide();
    Path path = Files.write(directory.resolve("file"), new byte[10]);
    try (FileChannel file = FileChannel.open(path)) {
      assertThrows(EOFException.class, () -> out.write(file, 5, 10));
    }
  }
}
