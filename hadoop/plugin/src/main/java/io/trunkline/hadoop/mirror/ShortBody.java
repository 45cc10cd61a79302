package io.trunkline.hadoop.mirror;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** Keeps an answer's body in memory, and gives one up that is too long. */
final class ShortBody implements HttpResponse.BodySubscriber<byte[]> {
  private static final int MAX_BYTES = 64 << 10;

  private final CompletableFuture<byte[]> whole = new CompletableFuture<>();
  private final ByteArrayOutputStream taken = new ByteArrayOutputStream();
  private Flow.Subscription subscription;

  @Override
  public CompletionStage<byte[]> getBody() {
    return whole;
  }

  @Override
  public void onSubscribe(Flow.Subscription ofThis) {
    subscription = ofThis;
    subscription.request(Long.MAX_VALUE);
  }

  @Override
  public void onNext(List<ByteBuffer> parts) {
    for (ByteBuffer part : parts) {
      if (taken.size() + part.remaining() > MAX_BYTES) {
        subscription.cancel();
        whole.completeExceptionally(
            new IOException("an answer of more than " + MAX_BYTES + " bytes"));
        return;
      }
      byte[] bytes = new byte[part.remaining()];
      part.get(bytes);
      taken.writeBytes(bytes);
    }
  }

  @Override
  public void onError(Throwable failure) {
    whole.completeExceptionally(failure);
  }

  @Override
  public void onComplete() {
    whole.complete(taken.toByteArray());
  }
}
