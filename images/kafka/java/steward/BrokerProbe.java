package steward;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
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
 * What a broker's probes ask over HTTP: {@code /readyz} (it is registered in ZooKeeper and serves) and {@code /healthz} (the JVM
 * answers). An agent: {@code -javaagent:steward.jar=PORT}.
 *
 * <p>It looks at Kafka's own metrics within the JVM. Leaves out the state of the cluster: whether partitions are in sync, or ZooKeeper
 * answers, is no reason to take a broker out of service. Brokers serve without ZooKeeper, and were they all unready, no client found one.
 */
public final class BrokerProbe {
    private static final String BROKER_STATE = "kafka.server:type=KafkaServer,name=BrokerState";
    private static final String SESSION_STATE = "kafka.server:type=SessionExpireListener,name=SessionState";

    /** Kafka's BrokerState.RUNNING: set when the broker is registered and its listeners take requests. */
    private static final int RUNNING = 3;

    /** ZooKeeper's names. While a connection is made again nobody but ZooKeeper knows the session to be over, and then it is CLOSED. */
    private static final Set<String> SESSION_LIVES = Set.of("CONNECTED", "CONNECTING");

    private BrokerProbe() {}

    /** Listens from before Kafka starts. Its threads are daemons, so that they keep no JVM alive that has nothing else to do. */
    public static void premain(String port) throws InterruptedException {
        Thread starter = new Thread(() -> listen(Integer.parseInt(port)), "probes");
        starter.setDaemon(true);
        starter.start();
        starter.join();
    }

    private static void listen(int port) {
        try {
            HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
            server.createContext("/healthz", exchange -> answer(exchange, null));
            server.createContext("/readyz", exchange -> answer(exchange, whyNotReady()));
            server.start();
        } catch (IOException error) {
            throw new UncheckedIOException("the port " + port + " of the probes cannot be had", error);
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

    private static void answer(HttpExchange exchange, String trouble) throws IOException {
        byte[] text = ((trouble == null ? "ok" : trouble) + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(trouble == null ? 200 : 503, text.length);
        exchange.getResponseBody().write(text);
        exchange.close();
    }
}
