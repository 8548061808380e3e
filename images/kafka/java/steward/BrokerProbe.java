package steward;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import io.prometheus.jmx.JmxCollector;
import io.prometheus.metrics.exporter.httpserver.MetricsHandler;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * Probes and metrics of a broker over HTTP: {@code /readyz} (it is registered in ZooKeeper and serves), {@code /healthz} (the JVM
 * answers), and {@code /metrics} for Prometheus. An agent: {@code -javaagent:steward.jar=PORT:FILE}, where FILE is the configuration of
 * Prometheus' exporter of JMX.
 *
 * <p>Readiness follows from Kafka's own metrics within the JVM, not from the state of the cluster: partitions out of sync, or a ZooKeeper
 * that does not answer, are no reason to take a broker out of service. Brokers serve without ZooKeeper, and if all of them were unready,
 * clients would find no broker.
 */
public final class BrokerProbe {
    private static final String BROKER_STATE = "kafka.server:type=KafkaServer,name=BrokerState";
    private static final String SESSION_STATE = "kafka.server:type=SessionExpireListener,name=SessionState";

    /** Kafka's BrokerState.RUNNING: set when the broker is registered and its listeners take requests. */
    private static final int RUNNING = 3;

    /** ZooKeeper's names. During a reconnect only ZooKeeper knows whether the session has expired; it is CLOSED afterwards. */
    private static final Set<String> SESSION_LIVES = Set.of("CONNECTED", "CONNECTING");

    private BrokerProbe() {}

    /** Listens from before Kafka starts. Its threads are daemons, so that they keep no JVM alive that has nothing else to do. */
    public static void premain(String options) throws InterruptedException {
        String[] portAndFile = options.split(":", 2);
        Thread starter = new Thread(() -> listen(Integer.parseInt(portAndFile[0]), new File(portAndFile[1])), "probes");
        starter.setDaemon(true);
        starter.start();
        starter.join();
    }

    private static void listen(int port, File configuration) {
        try {
            HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
            server.createContext("/healthz", exchange -> answer(exchange, null));
            server.createContext("/readyz", exchange -> answer(exchange, whyNotReady()));
            server.createContext("/metrics", new LazyMetrics(configuration));
            server.start();
        } catch (IOException error) {
            throw new UncheckedIOException("the port " + port + " of the probes cannot be had", error);
        }
    }

    /** The exporter is loaded by the first scrape: a broker starts as fast as without it. The server has one thread. */
    private static final class LazyMetrics implements HttpHandler {
        private final File configuration;
        private HttpHandler loaded;

        private LazyMetrics(File configuration) {
            this.configuration = configuration;
        }

        @Override
        public void handle(HttpExchange exchange) throws IOException {
            if (loaded == null) {
                loaded = load();
            }
            loaded.handle(exchange);
        }

        private HttpHandler load() throws IOException {
            try {
                PrometheusRegistry registry = new PrometheusRegistry();
                new JmxCollector(configuration).register(registry);
                return new MetricsHandler(registry);
            } catch (JMException error) {
                throw new IOException("the configuration of the metrics is invalid: " + error.getMessage(), error);
            }
        }
    }

    private static String whyNotReady() {
        try {
            Object state = value(BROKER_STATE);
            if (!(state instanceof Number) || ((Number) state).intValue() != RUNNING) {
                return "the broker's state is " + state + ", not " + RUNNING + " (running)";
            }
            String session = String.valueOf(value(SESSION_STATE));
            return SESSION_LIVES.contains(session) ? null : "the session with ZooKeeper is " + session;
        } catch (InstanceNotFoundException error) {
            return "the broker is starting";
        } catch (JMException error) {
            return error.toString();
        }
    }

    private static Object value(String metric) throws JMException {
        return ManagementFactory.getPlatformMBeanServer().getAttribute(new ObjectName(metric), "Value");
    }

    private static void answer(HttpExchange exchange, String reason) throws IOException {
        byte[] text = ((reason == null ? "ok" : reason) + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(reason == null ? 200 : 503, text.length);
        exchange.getResponseBody().write(text);
        exchange.close();
    }
}
