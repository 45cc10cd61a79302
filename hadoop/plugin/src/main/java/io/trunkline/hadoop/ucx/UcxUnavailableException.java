package io.trunkline.hadoop.ucx;

import java.io.IOException;

/** UCX cannot be used on this machine; the message says why and how to change that. */
public final class UcxUnavailableException extends IOException {
  /** With a reason. */
  public UcxUnavailableException(String reason) {
    super(reason);
  }

  /** With a reason and what brought it about. */
  public UcxUnavailableException(String reason, Throwable cause) {
    super(reason, cause);
  }
}
