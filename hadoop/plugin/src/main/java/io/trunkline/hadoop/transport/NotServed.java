package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.stats.Fallback;

/** A transport cannot serve an operation, which goes by the next one of the list. */
public final class NotServed extends Exception {
  private static final long serialVersionUID = 1L;

  private final Fallback reason;

  /**
   * A refusal. It is part of ordinary work, so that it carries no stack trace.
   *
   * @param reason why
   * @param detail what is known of the cause, may be empty
   */
  public NotServed(Fallback reason, String detail) {
    super(detail == null ? "" : detail, null, false, false);
    this.reason = reason;
  }

  /**
   * Why.
   *
   * @return the reason
   */
  public Fallback reason() {
    return reason;
  }
}
