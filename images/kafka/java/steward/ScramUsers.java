package steward;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaServer;
import kafka.zk.AdminZkClient;
import kafka.zk.KafkaZkClient;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.internals.ScramCredentialUtils;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.common.utils.Time;
import scala.Option;

/**
 * Writes SCRAM users into ZooKeeper before a broker starts, as {@code kafka-configs --zookeeper} does. Brokers authenticate to each other
 * with one of these users, so no broker can be asked to create them.
 *
 * <p>A credential that was made from the same password is kept. Other users are not changed.
 */
public final class ScramUsers {
    /** Twice Kafka's minimum. The passwords that the chart creates are random, so that more iterations would add no security. */
    private static final int ITERATIONS = 8192;

    private final AdminZkClient zookeeper;
    private final ScramMechanism mechanism;
    private final ScramFormatter formatter;

    private ScramUsers(KafkaZkClient client, ScramMechanism mechanism) throws GeneralSecurityException {
        this.zookeeper = new AdminZkClient(client, Option.empty());
        this.mechanism = mechanism;
        this.formatter = new ScramFormatter(mechanism);
    }

    /** Takes the broker's properties, a mechanism, and a file with a line NAME:PASSWORD for each user. */
    public static void main(String[] arguments) throws GeneralSecurityException, IOException {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]))) {
            properties.load(reader);
        }
        KafkaConfig config = KafkaConfig.fromProps(properties, false);
        ScramMechanism mechanism = ScramMechanism.forMechanismName(arguments[1]);
        int written = 0;
        try (KafkaZkClient client = connect(config)) {
            ScramUsers users = new ScramUsers(client, mechanism);
            for (String line : Files.readAllLines(Path.of(arguments[2]))) {
                int colon = line.indexOf(':');
                written += users.write(line.substring(0, colon), line.substring(colon + 1)) ? 1 : 0;
            }
        }
        System.out.println("steward-kafka: wrote " + written + " SCRAM users that were new or had another password");
    }

    /** Connects as the broker does, and creates the chroot. The check of the controller's epoch is off: at the first start there is none. */
    private static KafkaZkClient connect(KafkaConfig config) {
        return KafkaZkClient.apply(
                config.zkConnect(),
                config.zkEnableSecureAcls(),
                config.zkSessionTimeoutMs(),
                config.zkConnectionTimeoutMs(),
                config.zkMaxInFlightRequests(),
                Time.SYSTEM,
                "SCRAM users",
                KafkaServer.zkClientConfigFromKafkaConfig(config, false),
                "steward",
                "ScramUsers",
                true,
                false);
    }

    private boolean write(String user, String password) throws GeneralSecurityException {
        String entity = Sanitizer.sanitize(user);
        Properties settings = zookeeper.fetchEntityConfig("users", entity);
        String present = settings.getProperty(mechanism.mechanismName());
        if (present != null && isOf(password, ScramCredentialUtils.credentialFromString(present))) {
            return false;
        }
        ScramCredential credential = formatter.generateCredential(password, ITERATIONS);
        settings.setProperty(mechanism.mechanismName(), ScramCredentialUtils.credentialToString(credential));
        zookeeper.changeConfigs("users", entity, settings, false);
        return true;
    }

    private boolean isOf(String password, ScramCredential credential) throws GeneralSecurityException {
        byte[] salted = formatter.saltedPassword(password, credential.salt(), credential.iterations());
        return MessageDigest.isEqual(formatter.storedKey(formatter.clientKey(salted)), credential.storedKey());
    }
}
