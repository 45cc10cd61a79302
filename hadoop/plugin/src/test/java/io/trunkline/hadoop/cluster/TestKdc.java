package io.trunkline.hadoop.cluster;

import io.trunkline.hadoop.TrunklineTrustedChannelResolver;
import java.io.File;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.minikdc.MiniKdc;
import org.apache.hadoop.security.UserGroupInformation;

/** A Kerberos of its own, which all users of this JVM are logged in by as long as it is there. */
final class TestKdc implements AutoCloseable {
  private final MiniKdc kdc;
  private final File keytab;

  TestKdc() throws Exception {
    File directory = Files.createTempDirectory("kdc").toFile();
    kdc = new MiniKdc(MiniKdc.createConf(), directory);
    kdc.start();
    keytab = new File(directory, "hdfs.keytab");
    kdc.createPrincipal(keytab, "hdfs/localhost", "HTTP/localhost");
  }

  /** Has a cluster with block tokens use it, and protect data connections by SASL. */
  void secure(Configuration conf, String qop) {
    conf.set("dfs.trustedchannel.resolver.class", TrunklineTrustedChannelResolver.class.getName());
    conf.set("dfs.data.transfer.protection", qop);
    login(conf);
  }

  /** Has a cluster with block tokens use it, and nothing protect data connections. */
  void login(Configuration conf) {
    conf.set("hadoop.security.authentication", "kerberos");
    for (String daemon : new String[] {"namenode", "datanode"}) {
      conf.set("dfs." + daemon + ".kerberos.principal", "hdfs/localhost@" + kdc.getRealm());
      conf.set("dfs." + daemon + ".keytab.file", keytab.getPath());
    }
    conf.set("dfs.web.authentication.kerberos.principal", "HTTP/localhost@" + kdc.getRealm());
    conf.set("dfs.web.authentication.kerberos.keytab", keytab.getPath());
    // Web pages without TLS.
    conf.setBoolean("ignore.secure.ports.for.testing", true);
    UserGroupInformation.setConfiguration(conf);
  }

  @Override
  public void close() {
    UserGroupInformation.reset();
    UserGroupInformation.setConfiguration(new Configuration());
    kdc.stop();
  }
}
