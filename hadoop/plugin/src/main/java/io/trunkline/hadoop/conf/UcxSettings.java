package io.trunkline.hadoop.conf;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Set;

/**
 * Settings of UCX in a JVM, checked whole when built; {@link Setting} declares them. Equal ones
 * share workers, endpoints and memory.
 */
public final class UcxSettings {
  /** How an I/O worker waits for the network. */
  public enum Polling {
    /** Spins shortly, then sleeps until UCX wakes it. */
    WAIT,
    /** Never sleeps: for cores that nothing else runs on. */
    BUSY
  }

  /** Those of {@link Setting} that are numbers of UCX itself. */
  static final Set<Setting> NUMBERS =
      EnumSet.of(
          Setting.UCX_WORKERS,
          Setting.UCX_SPIN_US,
          Setting.UCX_RENDEZVOUS_BYTES,
          Setting.UCX_MESSAGE_BYTES,
          Setting.UCX_POOL_BYTES,
          Setting.UCX_WINDOW_BYTES,
          Setting.UCX_STREAMS_MAX,
          Setting.UCX_IDLE_MS,
          Setting.UCX_CONNECT_MS,
          Setting.UCX_WAKE_CHECK_MS);

  /** By the place of their setting; what is no number of UCX is 0. */
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

  /**
   * A number.
   *
   * @param number one of UCX's own
   * @return its value, in the unit that its name says
   */
  public long get(Setting number) {
    return numbers[number.ordinal()];
  }

  /**
   * A number.
   *
   * @param number one of UCX's own
   * @return its value, in the unit that its name says
   */
  public int getInt(Setting number) {
    return Math.toIntExact(get(number));
  }

  /** Longest set-up of a connection, in milliseconds. */
  public int connectMs() {
    return getInt(Setting.UCX_CONNECT_MS);
  }

  /** Directory that holds libucp.so.0; empty: where the loader looks. */
  public String libraryDir() {
    return libraryDir;
  }

  /** How workers wait. */
  public Polling polling() {
    return polling;
  }

  /** Transports that UCX may use; empty: UCX chooses. */
  public String tls() {
    return tls;
  }

  /** Collects settings. */
  public static final class Builder {
    private final long[] numbers = new long[Setting.values().length];
    private String libraryDir = "";
    private Polling polling = Polling.WAIT;
    private String tls = "";

    private Builder() {
      for (Setting number : NUMBERS) {
        numbers[number.ordinal()] = number.defaultNumber();
      }
    }

    /**
     * Sets a number.
     *
     * @throws SettingsException when it is out of range
     */
    public Builder set(Setting number, long value) {
      if (!NUMBERS.contains(number)) {
        throw new IllegalArgumentException(number.key() + " is no number of UCX");
      }
      numbers[number.ordinal()] = number.checked(value);
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
     * @throws SettingsException naming the setting that does not go with another
     */
    public UcxSettings build() {
      long message = numbers[Setting.UCX_MESSAGE_BYTES.ordinal()];
      needs(Setting.UCX_RENDEZVOUS_BYTES, 0, message, "at most");
      needs(Setting.UCX_WINDOW_BYTES, 2 * message, Long.MAX_VALUE, "at least twice");
      needs(Setting.UCX_POOL_BYTES, 4 * message, Long.MAX_VALUE, "at least 4 times");
      return new UcxSettings(this);
    }

    private void needs(Setting setting, long least, long most, String relation) {
      long value = numbers[setting.ordinal()];
      if (value < least || value > most) {
        throw setting.wrong(
            Long.toString(value),
            "does not go with another setting",
            String.format(
                "it must be %s %s = %d",
                relation,
                Setting.UCX_MESSAGE_BYTES.key(),
                numbers[Setting.UCX_MESSAGE_BYTES.ordinal()]));
      }
    }
  }
}
