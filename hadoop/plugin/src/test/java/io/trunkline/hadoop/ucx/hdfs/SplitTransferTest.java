package io.trunkline.hadoop.ucx.hdfs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mark.SocketMark;
import io.trunkline.hadoop.transport.LateChannelSocket;
import io.trunkline.hadoop.transport.TransportChain;
import io.trunkline.hadoop.ucx.BodiesChannel;
import io.trunkline.hadoop.ucx.UcxChannel;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.net.NetUtils;
import org.apache.hadoop.net.SocketOutputStream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mockito.Mockito;

/** From a client's socket to a DataNode's peer, with stock streams and without the DataNode. */
@Timeout(60)
class SplitTransferTest {
  private static final int LIMIT_MS = 20_000;
  private static final byte[] CONTENT = new byte[1_500_000];
  private static final int[] SIZES = {3, 1, 1000, 65535, 65536, 1_000_000, 17, 600_000};

  @TempDir Path directory;

  private static Settings settings(int smallBytes) {
    Configuration conf = new Configuration(false);
    conf.set(Setting.TRANSPORT.key(), "ucx,tcp");
    conf.set(Setting.UCX_TLS.key(), "posix,cma,tcp");
    conf.setInt(Setting.UCX_SMALL_BYTES.key(), smallBytes);
    return Settings.from(conf);
  }

  private static DataNode dataNode() throws IOException {
    DataNode dataNode = Mockito.mock(DataNode.class);
    try (DatagramSocket free = new DatagramSocket(0, InetAddress.getLoopbackAddress())) {
      InetSocketAddress at = (InetSocketAddress) free.getLocalSocketAddress();
      Mockito.when(dataNode.getXferAddress()).thenReturn(at);
    }
    return dataNode;
  }

  /** Sends back what it gets, a message of each size, and the file. */
  private void serve(Peer peer) {
    try (peer) {
      peer.setReadTimeout(LIMIT_MS);
      peer.setWriteTimeout(LIMIT_MS);
      DataInputStream in = new DataInputStream(peer.getInputStream());
      SocketOutputStream out = (SocketOutputStream) peer.getOutputStream();
      for (int size : SIZES) {
        out.write(in.readNBytes(size));
      }
      try (FileChannel file = FileChannel.open(directory.resolve("file"))) {
        out.transferToFully(file, 0, 1000, null, null);
        out.transferToFully(file, 1000, CONTENT.length - 1000, null, null);
      }
      assertEquals(-1, in.read());
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  @ParameterizedTest
  @CsvSource({"65536,65536,true", "0,65536,false", "65536,0,false", "1000,1048576,true"})
  void aConnectionIsSplitWhereBothSidesWantIt(int client, int server, boolean split)
      throws Exception {
    assumeTrue(UcxTransport.available(settings(client)), "no UCX");
    new Random(3).nextBytes(CONTENT);
    Files.write(directory.resolve("file"), CONTENT);
    DataNode dataNode = dataNode();
    UcxTransport transport = new UcxTransport(settings(client));
    try (AutoCloseable service =
            new UcxTransport(settings(server))
                .serve(dataNode, peer -> new Thread(() -> serve(peer)).start());
        Socket socket =
            new LateChannelSocket(
                new TransportChain(settings(client), List.of(transport)), null, SocketMark.NONE)) {
      NetUtils.connect(socket, dataNode.getXferAddress(), LIMIT_MS);
      assertEquals(split ? BodiesChannel.class : UcxChannel.class, socket.getChannel().getClass());
      OutputStream out = NetUtils.getOutputStream(socket, LIMIT_MS);
      DataInputStream in = new DataInputStream(NetUtils.getInputStream(socket, LIMIT_MS));
      for (int size : SIZES) {
        out.write(CONTENT, 0, size);
        byte[] got = new byte[size];
        for (int at = 0; at < size; at++) {
          if (size < 2000) {
            got[at] = in.readByte();
          } else {
            in.readFully(got);
            break;
          }
        }
        assertArrayEquals(java.util.Arrays.copyOf(CONTENT, size), got, "" + size);
      }
      byte[] file = new byte[CONTENT.length];
      in.readFully(file);
      assertArrayEquals(CONTENT, file);
    }
  }
}
