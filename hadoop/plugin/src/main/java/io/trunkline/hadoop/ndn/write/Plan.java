package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.Preamble;

/** How the bytes of one connection to a DataNode's plug-in travel. */
public sealed interface Plan permits Plan.Plain, Plan.Produce, Plan.Relay, Plan.Inline {
  /** Everything as stock bytes. */
  record Plain() implements Plan {}

  /**
   * Bodies are published here.
   *
   * @param preamble names the block
   * @param publisher takes the bodies
   * @param inlineBytes bodies with less data go on the connection
   */
  record Produce(Preamble preamble, Publisher publisher, int inlineBytes) implements Plan {}

  /**
   * Nothing is published: bodies go on the connection, which is secure.
   *
   * @param preamble names the block
   */
  record Inline(Preamble preamble) implements Plan {}

  /**
   * Bodies come in by name and need not be passed on.
   *
   * @param inflow the write as it comes in
   */
  record Relay(Inflow inflow) implements Plan {}
}
