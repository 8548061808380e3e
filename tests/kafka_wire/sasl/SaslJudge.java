// Kafka's SASL classes as the reference: one line per command and result, all arguments in hexadecimal.
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.sasl.SaslClient;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.internals.ScramCredentialUtils;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslClient;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

public class SaslJudge {
    private static SaslServer server;
    private static SaslClient client;

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex.substring(1));
    }

    private static String text(String hex) {
        return new String(bytes(hex), StandardCharsets.UTF_8);
    }

    private static byte[] answer(String[] words) throws Exception {
        switch (words[0]) {
            case "credential": { // mechanism, salted password, salt, iterations
                ScramFormatter formatter = new ScramFormatter(ScramMechanism.forMechanismName(text(words[1])));
                ScramCredential made =
                    formatter.generateCredential(bytes(words[3]), bytes(words[2]), Integer.parseInt(text(words[4])));
                return ScramCredentialUtils.credentialToString(made).getBytes(StandardCharsets.UTF_8);
            }
            case "salted": { // mechanism, password, salt, iterations
                ScramFormatter formatter = new ScramFormatter(ScramMechanism.forMechanismName(text(words[1])));
                return formatter.saltedPassword(text(words[2]), bytes(words[3]), Integer.parseInt(text(words[4])));
            }
            case "server": { // mechanism, user, credential
                String user = text(words[2]);
                ScramCredential credential = ScramCredentialUtils.credentialFromString(text(words[3]));
                server = new ScramSaslServer(ScramMechanism.forMechanismName(text(words[1])), Map.of(), callbacks -> {
                    String name = ((NameCallback) callbacks[0]).getDefaultName();
                    if (name.equals(user)) ((ScramCredentialCallback) callbacks[1]).scramCredential(credential);
                });
                return new byte[0];
            }
            case "plain": { // user, password
                String user = text(words[1]), password = text(words[2]);
                server = new PlainSaslServer(callbacks -> {
                    boolean right = ((NameCallback) callbacks[0]).getDefaultName().equals(user)
                        && new String(((PlainAuthenticateCallback) callbacks[1]).password()).equals(password);
                    ((PlainAuthenticateCallback) callbacks[1]).authenticated(right);
                });
                return new byte[0];
            }
            case "client": { // mechanism, user, password
                String user = text(words[2]), password = text(words[3]);
                CallbackHandler handler = callbacks -> {
                    for (Callback callback : callbacks) {
                        if (callback instanceof NameCallback) ((NameCallback) callback).setName(user);
                        else if (callback instanceof PasswordCallback)
                            ((PasswordCallback) callback).setPassword(password.toCharArray());
                        else throw new UnsupportedCallbackException(callback);
                    }
                };
                client = new ScramSaslClient(ScramMechanism.forMechanismName(text(words[1])), handler);
                return client.evaluateChallenge(new byte[0]);
            }
            case "to-server":
                return server.evaluateResponse(bytes(words[1]));
            case "to-client": {
                byte[] reply = client.evaluateChallenge(bytes(words[1]));
                return reply == null ? new byte[0] : reply;
            }
            case "user":
                return server.getAuthorizationID().getBytes(StandardCharsets.UTF_8);
            case "principal": // rules, subject
                return SslPrincipalMapper.fromRules(text(words[1])).getName(text(words[2])).getBytes(StandardCharsets.UTF_8);
            case "subject": { // a certificate in DER
                X509Certificate found = (X509Certificate) CertificateFactory.getInstance("X.509")
                    .generateCertificate(new ByteArrayInputStream(bytes(words[1])));
                return found.getSubjectX500Principal().getName().getBytes(StandardCharsets.UTF_8);
            }
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] arguments) {
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            try {
                System.out.println("=" + HexFormat.of().formatHex(answer(input.nextLine().split(" "))));
            } catch (Exception error) {
                System.out.println("!" + error.toString().replace('\n', ' '));
            }
            System.out.flush();
        }
    }
}
