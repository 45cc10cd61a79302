package io.trunkline.hadoop.ucx;

import java.util.Arrays;
import java.util.Objects;

/**
 * Settings of {@link UcxNode}, checked whole when built. Sizes in bytes unless the name says else.
 */
public final class UcxSettings {
  /** How an I/O worker waits for the network. */
  public enum Polling {
    /** Spins shortly, then sleeps until UCX wakes it. */
    WAIT,
    /** Never sleeps: for cores that nothing else runs on. */
    BUSY
  }

  /** Every setting that is a number: key, default, range. */
  public enum Key {
    /** UCX workers, one for each I/O thread. */
    WORKERS("trunkline.ucx.workers", 2, 1, 64),
    /** Longest spin before a wait, in microseconds. */
    SPIN_US("trunkline.ucx.spin.us", 50, 0, 10_000),
    /** Messages of this size and larger go by rendezvous. */
    RENDEZVOUS_BYTES("trunkline.ucx.rendezvous.bytes", 64 << 10, 4 << 10, 4 << 20),
    /** Largest message, which is the size of a large buffer. */
    MESSAGE_BYTES("trunkline.ucx.message.bytes", 512 << 10, 64 << 10, 16 << 20),
    /** Bound of registered memory. */
    POOL_BYTES("trunkline.ucx.pool.bytes", 256 << 20, 4 << 20, 1L << 40),
    /** Most bytes that a stream holds unread, for each direction. */
    WINDOW_BYTES("trunkline.ucx.window.bytes", 2 << 20, 128 << 10, 1 << 30),
    /** Most open streams. */
    STREAMS_MAX("trunkline.ucx.streams.max", 4096, 1, 1 << 20),
    /** An endpoint without streams is closed after that, as are buffers that nobody uses. */
    IDLE_MS("trunkline.ucx.idle.ms", 60_000, 100, 86_400_000),
    /** Longest set-up of an endpoint or a stream. */
    CONNECT_MS("trunkline.ucx.connect.ms", 5_000, 10, 600_000),
    /** A sleeping worker looks at the network that often even if UCX does not wake it. */
    WAKE_CHECK_MS("trunkline.ucx.wake.check.ms", 100, 1, 10_000);

    private final String key;
    private final long value;
    private final long least;
    private final long most;

    Key(String key, long value, long least, long most) {
      this.key = key;
      this.value = value;
      this.least = least;
      this.most = most;
    }

    /** The name that people set. */
    public String key() {
      return key;
    }

    /** The value unless set. */
    public long defaultValue() {
      return value;
    }

    /** The smallest value allowed. */
    public long least() {
      return least;
    }

    /** The largest value allowed. */
    public long most() {
      return most;
    }
  }

  /** Key of the directory that holds libucp. */
  public static final String LIBRARY_DIR = "trunkline.ucx.library.dir";

  /** Key of the way of waiting: wait or busy. */
  public static final String POLLING = "trunkline.ucx.polling";

  /** Key of the UCX transports of this JVM. */
  public static final String TLS = "trunkline.ucx.tls";

  private final long[] numbers;
  private final String libraryDir;
  private final Polling polling;
  private final String tls;

  private UcxSettings(Builder builder) {
    numbers = builder.numbers.clone();
    libraryDir = builder.libraryDir;
    polling = builder.polling;
    tls = builder.tls;
  }

  /** A builder with every default. */
  public static Builder builder() {
    return new Builder();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof UcxSettings that
        && Arrays.equals(numbers, that.numbers)
        && libraryDir.equals(that.libraryDir)
        && polling == that.polling
        && tls.equals(that.tls);
  }

  @Override
  public int hashCode() {
    return Objects.hash(Arrays.hashCode(numbers), libraryDir, polling, tls);
  }

  long get(Key key) {
    return numbers[key.ordinal()];
  }

  int getInt(Key key) {
    return Math.toIntExact(get(key));
  }

  /** Longest set-up of a connection, in milliseconds. */
  public int connectMs() {
    return getInt(Key.CONNECT_MS);
  }

  String libraryDir() {
    return libraryDir;
  }

  Polling polling() {
    return polling;
  }

  String tls() {
    return tls;
  }

  /** Collects settings. */
  public static final class Builder {
    private final long[] numbers = new long[Key.values().length];
    private String libraryDir = "";
    private Polling polling = Polling.WAIT;
    private String tls = "";

    private Builder() {
      for (Key key : Key.values()) {
        numbers[key.ordinal()] = key.value;
      }
    }

    /** Sets a number. */
    public Builder set(Key key, long value) {
      numbers[key.ordinal()] = value;
      return this;
    }

    /** Sets the directory that holds libucp.so.0; empty: where the loader looks. */
    public Builder libraryDir(String directory) {
      libraryDir = directory;
      return this;
    }

    /** Sets how workers wait. */
    public Builder polling(Polling value) {
      polling = value;
      return this;
    }

    /** Sets UCX_TLS for this JVM; empty: UCX chooses. The environment's UCX_TLS goes before it. */
    public Builder tls(String transports) {
      tls = transports;
      return this;
    }

    /**
     * The settings.
     *
     * @throws IllegalArgumentException naming the setting that is out of range or does not go with
     *     another
     */
    public UcxSettings build() {
      for (Key key : Key.values()) {
        long value = numbers[key.ordinal()];
        if (value < key.least || value > key.most) {
          throw new IllegalArgumentException(
              key.key + " = " + value + ": allowed are " + key.least + " .. " + key.most);
        }
      }
      long message = numbers[Key.MESSAGE_BYTES.ordinal()];
      needs(Key.RENDEZVOUS_BYTES, numbers[Key.RENDEZVOUS_BYTES.ordinal()] <= message, "at most");
      needs(Key.WINDOW_BYTES, numbers[Key.WINDOW_BYTES.ordinal()] >= 2 * message, "at least twice");
      needs(Key.POOL_BYTES, numbers[Key.POOL_BYTES.ordinal()] >= 4 * message, "at least 4 times");
      return new UcxSettings(this);
    }

    private void needs(Key key, boolean good, String relation) {
      if (!good) {
        throw new IllegalArgumentException(
            String.format(
                "%s = %d: must be %s %s = %d",
                key.key,
                numbers[key.ordinal()],
                relation,
                Key.MESSAGE_BYTES.key,
                numbers[Key.MESSAGE_BYTES.ordinal()]));
      }
    }
  }
}
