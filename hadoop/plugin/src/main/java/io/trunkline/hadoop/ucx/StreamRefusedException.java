package io.trunkline.hadoop.ucx;

import java.net.ConnectException;

/** The peer is there but does not take the stream. */
final class StreamRefusedException extends ConnectException {
  StreamRefusedException(String reason) {
    super(reason);
  }
}
