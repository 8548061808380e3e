import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.lang.reflect.Field;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.test.junit.ClusterTestExtensions;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
import org.opentest4j.TestAbortedException;

/**
 * Runs Kafka's client tests against one broker that is a process of its own, in place of Kafka's extension, which starts brokers in this JVM.
 *
 * "steward.broker.command" is the command line of the broker without its last argument, a properties file; its words are separated by
 * newlines. The variable CLUSTER_FEATURES has the features of the cluster. "steward.cluster.folder" is where the folders of the brokers are created. A case for several brokers gets one, and its topics get one replica.
 */
public final class OneBrokerExtension implements TestTemplateInvocationContextProvider {
    @Override
    public boolean supportsTestTemplate(ExtensionContext context) {
        return true;
    }

    @Override
    public boolean mayReturnZeroTestTemplateInvocationContexts(ExtensionContext context) {
        return true;
    }

    /** Yields one invocation for each cluster that the case describes, not one for each arrangement of Kafka's controllers. */
    @Override
    public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(ExtensionContext context) {
        Set<ClusterConfig> configs = Collections.newSetFromMap(new IdentityHashMap<>());
        return new ClusterTestExtensions().provideTestTemplateInvocationContexts(context)
            .map(OneBrokerExtension::config).filter(configs::add).map(Invocation::new);
    }

    private static ClusterConfig config(TestTemplateInvocationContext invocation) {
        try {
            Field field = invocation.getClass().getDeclaredField("clusterConfig");
            field.setAccessible(true);
            return (ClusterConfig) field.get(invocation);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private record Invocation(ClusterConfig config) implements TestTemplateInvocationContext {
        @Override
        public List<Extension> getAdditionalExtensions() {
            OneBroker cluster = new OneBroker(config);
            BeforeEachCallback begin = context -> {
                if (config.isAutoStart()) {
                    cluster.start();
                }
            };
            AfterEachCallback end = context -> cluster.stop();
            return List.of(begin, end, new ParameterResolver() {
                @Override
                public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
                    return parameter.getParameter().getType() == ClusterInstance.class;
                }

                @Override
                public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
                    return cluster;
                }
            });
        }
    }

    /** A cluster of one broker. Its objects are in another process: {@code brokers()} has the id without an object. */
    private static final class OneBroker implements ClusterInstance {
        private static final int ID = 0;
        private static final int LOWEST_PORT = 15_000;
        private static final int LOWEST_EPHEMERAL_PORT = 32_768;
        private static final long READY_TIMEOUT_MS = 90_000;
        private static final long TOPIC_TIMEOUT_MS = 30_000;
        private static final long END_TIMEOUT_S = 30;
        private static final List<String> REPLICATION = List.of(
            "offsets.topic.replication.factor", "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
            "share.coordinator.state.topic.replication.factor", "share.coordinator.state.topic.min.isr", "default.replication.factor");

        private final ClusterConfig config;
        private Path properties;
        private int port;
        private Process process;
        private boolean started;

        private OneBroker(ClusterConfig config) {
            this.config = config;
        }

        @Override
        public Type type() {
            return Type.CO_KRAFT;
        }

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            return Collections.singletonMap(ID, null);
        }

        @Override
        public Map<Integer, KafkaBroker> aliveBrokers() {
            return process != null && process.isAlive() ? brokers() : Map.of();
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            return Collections.singletonMap(ID, null);
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public Set<Integer> controllerIds() {
            return Set.of(ID);
        }

        @Override
        public ListenerName clientListener() {
            return config.brokerListenerName();
        }

        @Override
        public ListenerName controllerListenerName() {
            return config.controllerListenerName();
        }

        @Override
        public String bootstrapServers() {
            return "127.0.0.1:" + port;
        }

        @Override
        public String bootstrapControllers() {
            throw new TestAbortedException("the case talks to the controller");
        }

        @Override
        public List<Integer> brokerBoundPorts() {
            return List.of(port);
        }

        @Override
        public String clusterId() {
            try (Admin admin = admin()) {
                return admin.describeCluster().clusterId().get();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        @Override
        public void start() {
            if (started) {
                return;
            }
            started = true;
            try {
                port = freePort();
                properties = Files.createTempDirectory(Path.of(System.getProperty("steward.cluster.folder")), "broker").resolve("server.properties");
                try (Writer writer = Files.newBufferedWriter(properties)) {
                    settings().store(writer, null);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            startBroker(ID);
        }

        private Properties settings() {
            String listener = clientListener().value();
            int controllerPort = freePort();
            Properties settings = new Properties();
            settings.put("node.id", String.valueOf(ID));
            settings.put("process.roles", "broker,controller");
            settings.put("controller.quorum.voters", ID + "@127.0.0.1:" + controllerPort);
            settings.put("listeners", listener + "://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controllerPort);
            settings.put(
                "listener.security.protocol.map", listener + ":" + config.brokerSecurityProtocol() + ",CONTROLLER:PLAINTEXT");
            settings.put("controller.listener.names", "CONTROLLER");
            settings.put("inter.broker.listener.name", listener);
            settings.put("log.dirs", IntStream.range(0, config.numDisksPerBroker())
                .mapToObj(number -> properties.resolveSibling("data-" + number).toString()).collect(Collectors.joining(",")));
            if (config.brokerSecurityProtocol() == SecurityProtocol.SASL_PLAINTEXT) {
                settings.putAll(saslSettings(listener));
            }
            // Kafka's extension sets these too.
            settings.put("group.initial.rebalance.delay.ms", "0");
            settings.put("offsets.topic.num.partitions", "5");
            settings.put("transaction.state.log.num.partitions", "5");
            settings.put("share.coordinator.state.topic.num.partitions", "5");
            settings.put("log.cleaner.dedupe.buffer.size", "2097152");
            settings.putAll(config.serverProperties());
            settings.putAll(config.perServerOverrideProperties().getOrDefault(ID, Map.of()));
            REPLICATION.forEach(name -> settings.put(name, "1"));
            return settings;
        }

        /** As Kafka's extension does. Without authentication there is only the connection of Kafka to its own controller. */
        private static Map<String, String> saslSettings(String listener) {
            return Map.of(
                "sasl.enabled.mechanisms", "PLAIN",
                "sasl.mechanism.inter.broker.protocol", "PLAIN",
                "listener.name." + listener.toLowerCase(Locale.ROOT) + ".plain.sasl.jaas.config", plainUsers(),
                "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found", "false",
                "super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN + ";User:ANONYMOUS");
        }

        private static String plainUsers() {
            String user = JaasUtils.KAFKA_PLAIN_USER1;
            String userPassword = JaasUtils.KAFKA_PLAIN_USER1_PASSWORD;
            String admin = JaasUtils.KAFKA_PLAIN_ADMIN;
            String adminPassword = JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD;
            return String.format(
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%s\" password=\"%s\" user_%s=\"%s\" user_%s=\"%s\";",
                admin, adminPassword, admin, adminPassword, user, userPassword);
        }

        /** Returns a port below those that Linux uses for outgoing connections. */
        private static int freePort() {
            while (true) {
                int candidate = ThreadLocalRandom.current().nextInt(LOWEST_PORT, LOWEST_EPHEMERAL_PORT);
                try (ServerSocket socket = new ServerSocket(candidate)) {
                    return socket.getLocalPort();
                } catch (IOException error) {
                    // Another process has it.
                }
            }
        }

        @Override
        public boolean started() {
            return started;
        }

        @Override
        public void stop() {
            if (process != null) {
                process.destroyForcibly();
                waitForEnd();
            }
        }

        @Override
        public boolean stopped() {
            return started && !process.isAlive();
        }

        @Override
        public void shutdownBroker(int id) {
            requireKnown(id);
            process.destroy();
            waitForEnd();
        }

        private void waitForEnd() {
            try {
                if (!process.waitFor(END_TIMEOUT_S, TimeUnit.SECONDS)) {
                    process.destroyForcibly();
                    throw new IllegalStateException("the broker did not end in time");
                }
            } catch (InterruptedException error) {
                process.destroyForcibly();
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void startBroker(int id) {
            requireKnown(id);
            List<String> command = new ArrayList<>(List.of(System.getProperty("steward.broker.command").split("\n")));
            command.add(properties.toString());
            ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(properties.resolveSibling("broker.log").toFile()));
            builder.environment().put("CLUSTER_FEATURES", config.features().entrySet().stream()
                .map(each -> each.getKey().featureName() + "=" + each.getValue()).collect(Collectors.joining(" ")));
            try {
                process = builder.start();
                waitForReadyBrokers();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(error);
            }
        }

        private static void requireKnown(int id) {
            if (id != ID) {
                throw new TestAbortedException("the case needs several brokers");
            }
        }

        @Override
        public void waitForReadyBrokers() throws InterruptedException {
            Map<String, Object> timeouts = Map.of("default.api.timeout.ms", "2000", "request.timeout.ms", "1500");
            waitFor("the broker, whose log is beside " + properties, READY_TIMEOUT_MS, timeouts,
                admin -> admin.describeCluster().nodes().get().size() == 1);
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            waitFor("topic " + topic, TOPIC_TIMEOUT_MS, Map.of(), admin -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
                .partitions().stream().filter(each -> each.leader() != null && !each.leader().isEmpty()).count() == partitions);
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            waitFor("the deletion of " + topic, TOPIC_TIMEOUT_MS, Map.of(), admin -> !admin.listTopics().names().get().contains(topic));
        }

        @Override
        public void createTopic(String name, int partitions, short replicas, Map<String, String> configs) throws InterruptedException {
            try (Admin admin = admin()) {
                admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(configs))).all().get();
            } catch (ExecutionException error) {
                // Kafka's extension ignores the result too: a case may create a topic again.
            }
            waitTopicCreation(name, partitions);
        }

        @Override
        public void ensureConsistentMetadata() {
            // One broker agrees with itself.
        }

        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) {
            // One broker agrees with itself.
        }

        private interface Condition {
            boolean holds(Admin admin) throws Exception;
        }

        private void waitFor(String what, long timeoutMs, Map<String, Object> adminSettings, Condition condition) throws InterruptedException {
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
            Exception last = null;
            try (Admin admin = admin(adminSettings)) {
                while (System.nanoTime() < end && process.isAlive()) {
                    try {
                        if (condition.holds(admin)) {
                            return;
                        }
                    } catch (InterruptedException error) {
                        throw error;
                    } catch (Exception error) {
                        last = error;
                    }
                    Thread.sleep(20);
                }
            }
            throw new IllegalStateException("waited in vain for " + what + (process.isAlive() ? "" : ", which ended"), last);
        }
    }
}
