package steward;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Writes the value of a label of this pod's node into a file: the rack of the broker that starts next. {@code NODE_NAME} names the
 * node; one without the label gives an empty file, which means no rack.
 *
 * <p>A pod has no access to its node's labels, so they are read from the Kubernetes API with the pod's own account.
 */
public final class NodeLabel {
    private static final Path ACCOUNT = Path.of("/var/run/secrets/kubernetes.io/serviceaccount");

    /** One per second, for an API server that is starting. After the last one the kubelet restarts the container. */
    private static final int ATTEMPTS = 10;

    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private NodeLabel() {}

    /** Takes the label's name and the file's path; ends with 1 when the node cannot be read. */
    public static void main(String[] arguments) throws GeneralSecurityException, IOException, InterruptedException {
        String node = System.getenv("NODE_NAME");
        String label = arguments[0];
        String problem = "";
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            try {
                HttpResponse<String> answer = ask(node);
                if (answer.statusCode() == 200) {
                    String value = new ObjectMapper().readTree(answer.body()).path("metadata").path("labels").path(label).asText("");
                    Files.writeString(Path.of(arguments[1]), value);
                    System.out.println("node " + node + (value.isEmpty() ? " has no label " + label + ": no rack" : ": " + label + "=" + value));
                    return;
                }
                problem = "status " + answer.statusCode();
            } catch (IOException error) {
                problem = error.toString();
            }
            Thread.sleep(1000);
        }
        System.err.println("node " + node + " cannot be read (this needs the verb get on nodes): " + problem);
        System.exit(1);
    }

    private static HttpResponse<String> ask(String node) throws GeneralSecurityException, IOException, InterruptedException {
        String host = System.getenv("KUBERNETES_SERVICE_HOST");
        String address = (host.contains(":") ? "[" + host + "]" : host) + ":" + System.getenv("KUBERNETES_SERVICE_PORT");
        URI uri = URI.create("https://" + address + "/api/v1/nodes/" + URLEncoder.encode(node, StandardCharsets.UTF_8));
        HttpRequest request = HttpRequest.newBuilder(uri)
                .timeout(TIMEOUT)
                .header("Authorization", "Bearer " + Files.readString(ACCOUNT.resolve("token")).strip())
                .build();
        HttpClient client = HttpClient.newBuilder().sslContext(trust()).connectTimeout(TIMEOUT).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    /** The cluster's own authority, and no other. */
    private static SSLContext trust() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = Files.newInputStream(ACCOUNT.resolve("ca.crt"))) {
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(file)) {
                store.setCertificateEntry("authority-" + store.size(), certificate);
            }
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        return context;
    }
}
