package io.trunkline.hadoop.mirror;

import java.util.List;

/**
 * What the controller says of connections of one pipeline that were reported at once.
 *
 * @param answer of the last connection that it takes, null where it takes none
 * @param refusals one for each connection that it does not take
 */
record Told(Answer answer, List<RefusedException> refusals) {
  Told {
    refusals = List.copyOf(refusals);
  }
}
