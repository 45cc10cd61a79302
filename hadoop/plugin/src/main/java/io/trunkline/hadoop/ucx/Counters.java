package io.trunkline.hadoop.ucx;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/** Counts of one {@link UcxNode}; {@link UcxMetrics} says what each means. */
final class Counters {
  final AtomicInteger endpointsOpen = new AtomicInteger();
  final LongAdder endpointsConnected = new LongAdder();
  final LongAdder endpointsAccepted = new LongAdder();
  final LongAdder endpointsFailed = new LongAdder();
  final AtomicInteger streamsOpen = new AtomicInteger();
  final LongAdder streamsOpened = new LongAdder();
  final LongAdder streamsAccepted = new LongAdder();
  final LongAdder streamsRefused = new LongAdder();
  final LongAdder bytesSent = new LongAdder();
  final LongAdder bytesReceived = new LongAdder();
  final LongAdder eagerSent = new LongAdder();
  final LongAdder rendezvousSent = new LongAdder();
  final LongAdder poolWaits = new LongAdder();
  final LongAdder framesRefused = new LongAdder();
  final LongAdder wakeups = new LongAdder();

  /** Counts as they are now, with what the pool holds. */
  UcxMetrics snapshot(BufferPool pool) {
    return new UcxMetrics(
        pool.registeredBytes(),
        pool.inUseBytes(),
        pool.unpooledBytes(),
        endpointsOpen.get(),
        endpointsConnected.sum(),
        endpointsAccepted.sum(),
        endpointsFailed.sum(),
        streamsOpen.get(),
        streamsOpened.sum(),
        streamsAccepted.sum(),
        streamsRefused.sum(),
        bytesSent.sum(),
        bytesReceived.sum(),
        eagerSent.sum(),
        rendezvousSent.sum(),
        poolWaits.sum(),
        framesRefused.sum(),
        wakeups.sum());
  }
}
