import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import kafka.api.LeaderAndIsr;
import kafka.cluster.Broker;
import kafka.cluster.EndPoint;
import kafka.controller.ControllerContext;
import kafka.controller.Election;
import kafka.controller.ElectionResult;
import kafka.controller.PartitionState;
import kafka.controller.ReplicaAssignment;
import kafka.server.KafkaConfig;
import kafka.zk.AdminZkClient;

import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.storage.internals.log.LogConfig;

import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Answers what Kafka itself decides. One line of JSON in, {"ask": WHAT, "cases": [...]}; one line out, a list with an answer
 * for each case. It ends when its input does. What it is asked is in the methods below, one for each WHAT.
 */
public final class ClusterJudge {
    private static final TopicPartition PARTITION = new TopicPartition("judged", 0);
    private static final Map<String, Object> BROKER_DEFAULTS = brokerDefaults();

    interface Question {
        Object answer(JsonNode one) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Question> questions = Map.of(
            "place", ClusterJudge::place, "add", ClusterJudge::add, "elect", ClusterJudge::elect,
            "states", ClusterJudge::states, "config", ClusterJudge::config, "parse", ClusterJudge::parse,
            "name", ClusterJudge::name);
        ObjectMapper mapper = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        // Kafka's classes may print; only answers go to the real standard output.
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = mapper.readTree(line);
            Question question = questions.get(request.get("ask").asText());
            List<Object> answers = new ArrayList<>();
            for (JsonNode one : request.get("cases"))
                answers.add(answer(question, one));
            out.println(mapper.writeValueAsString(answers));
        }
    }

    /** An exception is an answer too: its class and its message. */
    private static Object answer(Question question, JsonNode one) {
        try {
            return question.answer(one);
        } catch (Exception refusal) {
            Map<String, Object> refused = new LinkedHashMap<>();
            refused.put("refused", String.valueOf(refusal.getMessage()));
            refused.put("of_value", refusal instanceof ConfigException);
            return refused;
        }
    }

    /** Places partitions; numbers are fixed by "start", or drawn from a random source with "seed" and told. */
    private static Object place(JsonNode one) throws Exception {
        List<BrokerMetadata> brokers = brokers(one.get("brokers"));
        Map<String, Object> answer = new LinkedHashMap<>();
        int start = -1;
        if (one.hasNonNull("start")) {
            start = one.get("start").asInt();
            answer.put("drawn", List.of(start, start));
        } else {
            long seed = one.get("seed").asLong();
            Field source = AdminUtils.class.getDeclaredField("RAND");
            source.setAccessible(true);
            ((Random) source.get(null)).setSeed(seed);
            Random same = new Random(seed);
            answer.put("drawn", List.of(same.nextInt(brokers.size()), same.nextInt(brokers.size())));
        }
        Map<Integer, List<Integer>> placed = AdminUtils.assignReplicasToBrokers(
            brokers, one.get("partitions").asInt(), one.get("factor").asInt(), start, one.get("first").asInt());
        answer.put("placed", new ArrayList<>(new TreeMap<>(placed).values()));
        return answer;
    }

    /** Places partitions added to a topic of "present" partitions whose partition 0 has the "replicas". */
    private static Object add(JsonNode one) {
        Map<Object, ReplicaAssignment> present = new HashMap<>();
        for (int partition = 0; partition < one.get("present").asInt(); partition++)
            present.put(partition, ReplicaAssignment.apply(ints(one.get("replicas"))));
        AdminZkClient client = new AdminZkClient(null, Option.empty());
        scala.collection.Map<Object, ReplicaAssignment> added = client.createNewPartitionsAssignment(
            "judged", CollectionConverters.asScala(present), CollectionConverters.asScala(brokers(one.get("brokers"))),
            one.get("total").asInt(), Option.empty());
        Map<Object, Object> placed = new TreeMap<>();
        CollectionConverters.asJava(added).forEach((partition, replicas) -> placed.put(partition, list(replicas.replicas())));
        return new ArrayList<>(placed.values());
    }

    /** Elects for one partition by the "selector"; answers leader, ISR and recovery state, or null. */
    private static Object elect(JsonNode one) {
        ControllerContext context = context(one);
        LeaderAndIsr now = LeaderAndIsr.apply(one.get("leader").asInt(), ints(one.get("isr")).toList());
        Seq<Tuple2<TopicPartition, LeaderAndIsr>> partitions = one(new Tuple2<>(PARTITION, now));
        Seq<ElectionResult> results;
        switch (one.get("selector").asText()) {
            case "offline":
                Object unclean = one.get("unclean").asBoolean();
                results = Election.leaderForOffline(context, true, one(new Tuple3<>(PARTITION, Some.apply(now), unclean)));
                break;
            case "reassigned": results = Election.leaderForReassign(context, partitions); break;
            case "preferred": results = Election.leaderForPreferredReplica(context, partitions); break;
            case "shutdown": results = Election.leaderForControlledShutdown(context, partitions); break;
            default: throw new IllegalArgumentException("no selector " + one.get("selector"));
        }
        ElectionResult result = results.head();
        if (result.leaderAndIsr().isEmpty())
            return null;
        LeaderAndIsr elected = result.leaderAndIsr().get();
        return Map.of("leader", elected.leader(), "isr", list(elected.isr()),
            "recovery", elected.leaderRecoveryState().name());
    }

    private static ControllerContext context(JsonNode one) {
        ControllerContext context = new ControllerContext();
        Map<Broker, Object> live = new HashMap<>();
        Seq<EndPoint> nowhere = CollectionConverters.asScala(new ArrayList<EndPoint>());
        for (JsonNode id : one.get("live"))
            live.put(Broker.apply(id.asInt(), nowhere, Option.empty()), 0L);
        context.setLiveBrokers(CollectionConverters.asScala(live));
        for (JsonNode id : one.get("shutting_down"))
            context.shuttingDownBrokerIds().add(id.asInt());
        context.updatePartitionFullReplicaAssignment(PARTITION, ReplicaAssignment.apply(
            ints(one.get("replicas")), ints(one.get("adding")), ints(one.get("removing"))));
        return context;
    }

    /** Gives the number of every state. */
    private static Object states(JsonNode one) throws Exception {
        Map<String, Object> numbers = new TreeMap<>();
        for (JsonNode name : one.get("names")) {
            Object state = Class.forName("kafka.controller." + name.asText() + "$").getField("MODULE$").get(null);
            numbers.put(name.asText(), (int) ((PartitionState) state).state());
        }
        return numbers;
    }

    /** Validates a topic's configs as a broker does; answers null or is refused. */
    private static Object config(JsonNode one) {
        Properties configs = new Properties();
        one.get("configs").fields().forEachRemaining(entry -> configs.setProperty(entry.getKey(), entry.getValue().asText()));
        Map<String, String> existing = new HashMap<>();
        one.get("existing").fields().forEachRemaining(entry -> existing.put(entry.getKey(), entry.getValue().asText()));
        boolean remote = one.get("remote").asBoolean();
        LogConfig.validate(existing, configs, BROKER_DEFAULTS, remote, one.get("zookeeper").asBoolean());
        return null;
    }

    /** Reads a text as a value of a type and prints it. */
    private static Object parse(JsonNode one) {
        ConfigDef.Type type = ConfigDef.Type.valueOf(one.get("type").asText());
        return String.valueOf(ConfigDef.parseType("judged", one.get("text").asText(), type));
    }

    /** Validates a topic's name, and lists which of the others collide with it. */
    private static Object name(JsonNode one) {
        String name = one.get("name").asText();
        Topic.validate(name);
        List<String> colliding = new ArrayList<>();
        for (JsonNode other : one.get("others")) {
            if (Topic.hasCollisionChars(name) && Topic.hasCollision(name, other.asText()))
                colliding.add(other.asText());
        }
        return colliding;
    }

    private static Map<String, Object> brokerDefaults() {
        Properties settings = new Properties();
        settings.setProperty("zookeeper.connect", "localhost:2181");
        return KafkaConfig.fromProps(settings, false).extractLogConfigMap();
    }

    private static List<BrokerMetadata> brokers(JsonNode pairs) {
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (JsonNode pair : pairs)
            brokers.add(new BrokerMetadata(pair.get(0).asInt(), Optional.ofNullable(pair.get(1).textValue())));
        return brokers;
    }

    private static Seq<Object> ints(JsonNode numbers) {
        List<Object> list = new ArrayList<>();
        numbers.forEach(number -> list.add(number.asInt()));
        return CollectionConverters.asScala(list);
    }

    private static <T> Seq<T> one(T value) {
        return CollectionConverters.asScala(new ArrayList<>(List.of(value)));
    }

    private static List<Object> list(Seq<Object> values) {
        return new ArrayList<>(CollectionConverters.asJava(values));
    }
}
