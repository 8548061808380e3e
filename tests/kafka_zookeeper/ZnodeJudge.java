import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.controller.ReplicaAssignment;
import kafka.zk.BrokerIdZNode;
import kafka.zk.BrokerInfo;
import kafka.zk.ClusterIdZNode;
import kafka.zk.ConfigEntityZNode;
import kafka.zk.ControllerEpochZNode;
import kafka.zk.ControllerZNode;
import kafka.zk.ExtendedAclChangeStore$;
import kafka.zk.FeatureZNode;
import kafka.zk.IsrChangeNotificationSequenceZNode;
import kafka.zk.LiteralAclChangeStore$;
import kafka.zk.LogDirEventNotificationSequenceZNode;
import kafka.zk.PreferredReplicaElectionZNode;
import kafka.zk.ProducerIdBlockZNode;
import kafka.zk.ReassignPartitionsZNode;
import kafka.zk.ResourceZNode;
import kafka.zk.TopicPartitionStateZNode;
import kafka.zk.TopicZNode;
import kafka.zk.ZkAclChangeStore;
import kafka.zk.ZkAclStore;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.zookeeper.data.Stat;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads znodes with Kafka's decoders and returns their values, until its input ends.
 *
 * Request, one line:  kind, blank, base64 of the znode's data.
 * Response, one line: a JSON array: ["value", the value], with the document as Kafka writes it as an optional third entry;
 *                     ["nothing"] if the decoder returns nothing; ["error", the exception].
 */
public final class ZnodeJudge {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] asked = line.split(" ", -1);
            System.out.println(JSON.writeValueAsString(answer(asked[0], Base64.getDecoder().decode(asked[1]))));
        }
    }

    private static List<Object> answer(String kind, byte[] data) {
        try {
            return judged(kind, data);
        } catch (Throwable e) { // Scala throws checked exceptions without declaring them
            return List.of("error", String.valueOf(e));
        }
    }

    private static List<Object> judged(String kind, byte[] data) throws Throwable {
        switch (kind) {
            case "controller":
                return optional(ControllerZNode.decode(data));
            case "controller_epoch":
                return List.of("value", ControllerEpochZNode.decode(data));
            case "state":
                return state(TopicPartitionStateZNode.decode(data, new Stat()));
            case "topic":
                return topic(TopicZNode.decode("t", data));
            case "broker":
                return broker(BrokerIdZNode.decode(1, data));
            case "config":
                java.util.Properties config = ConfigEntityZNode.decode(data);
                return List.of("value", new TreeMap<>(config), new String(ConfigEntityZNode.encode(config), UTF_8));
            case "isr_change":
                return List.of("value", partitions(IsrChangeNotificationSequenceZNode.decode(data)));
            case "election":
                return List.of("value", partitions(PreferredReplicaElectionZNode.decode(data)));
            case "log_dir":
                return optional(LogDirEventNotificationSequenceZNode.decode(data));
            case "reassignment":
                return reassignment(data);
            case "producer_ids":
                var block = ProducerIdBlockZNode.parseProducerIdBlockData(data);
                return List.of(
                    "value", List.of(block.assignedBrokerId(), block.firstProducerId(), block.lastProducerId()),
                    new String(ProducerIdBlockZNode.generateProducerIdBlockJson(block), UTF_8));
            case "features":
                FeatureZNode features = FeatureZNode.decode(data);
                return List.of(
                    "value", List.of(features.version(), features.status().id(), javaMap(features.features())));
            case "acls":
                var acls = ResourceZNode.decode(data, new Stat()).acls();
                List<Object> entries = new ArrayList<>();
                CollectionConverters.asJava(acls).forEach(each -> entries.add(each.toMap()));
                return List.of("value", entries, new String(ResourceZNode.encode(acls), UTF_8));
            case "acl_change":
                return resource(LiteralAclChangeStore$.MODULE$.decode(data));
            case "extended_acl_change":
                return resource(ExtendedAclChangeStore$.MODULE$.decode(data));
            case "cluster_id":
                return List.of("value", ClusterIdZNode.fromJson(data));
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static List<Object> resource(ResourcePattern found) {
        String path = ResourceZNode.path(found);
        ZkAclChangeStore store = ZkAclStore.apply(found.patternType()).changeStore();
        return List.of("value", path, new String(store.createChangeNode(found).bytes(), UTF_8));
    }

    private static List<Object> optional(Option<Object> found) {
        return found.isEmpty() ? List.of("nothing") : List.of("value", found.get());
    }

    private static List<Object> state(Option<LeaderIsrAndControllerEpoch> found) {
        if (found.isEmpty()) {
            return List.of("nothing");
        }
        var leaderAndIsr = found.get().leaderAndIsr();
        return List.of(
            "value",
            List.of(leaderAndIsr.leader(), leaderAndIsr.leaderEpoch(), CollectionConverters.asJava(leaderAndIsr.isr()),
                found.get().controllerEpoch(), leaderAndIsr.leaderRecoveryState().value()),
            new String(TopicPartitionStateZNode.encode(found.get()), UTF_8));
    }

    private static List<Object> topic(TopicZNode.TopicIdReplicaAssignment found) {
        Map<Integer, Object> partitions = new TreeMap<>();
        for (Map.Entry<TopicPartition, ReplicaAssignment> entry : CollectionConverters.asJava(found.assignment()).entrySet()) {
            ReplicaAssignment each = entry.getValue();
            partitions.put(entry.getKey().partition(),
                List.of(ints(each.replicas()), ints(each.addingReplicas()), ints(each.removingReplicas())));
        }
        Object id = found.topicId().isEmpty() ? "" : found.topicId().get().toString();
        return List.of("value", List.of(id, partitions),
            new String(TopicZNode.encode(found.topicId(), found.assignment()), UTF_8));
    }

    private static List<Object> broker(BrokerInfo found) {
        List<Object> endpoints = new ArrayList<>();
        CollectionConverters.asJava(found.broker().endPoints()).forEach(each -> endpoints.add(List.of(
            each.listenerName().value(), each.host() == null ? "" : each.host(), each.port(), each.securityProtocol().name)));
        Object rack = found.broker().rack().isEmpty() ? "" : found.broker().rack().get();
        return List.of("value", List.of(endpoints, rack, found.jmxPort(), found.version(), found.broker().features().toMap()));
    }

    private static List<Object> reassignment(byte[] data) {
        var found = ReassignPartitionsZNode.decode(data);
        if (found.isLeft()) {
            return List.of("nothing");
        }
        Map<String, Object> seen = new TreeMap<>();
        javaMap(found.toOption().get()).forEach((partition, replicas) ->
            seen.put(partition.topic() + "-" + partition.partition(), ints(replicas)));
        return List.of("value", seen);
    }

    private static List<Object> partitions(scala.collection.Set<TopicPartition> found) {
        List<String> seen = new ArrayList<>();
        CollectionConverters.asJava(found).forEach(each -> seen.add(each.topic() + "-" + each.partition()));
        seen.sort(null);
        return new ArrayList<>(seen);
    }

    private static List<Object> ints(scala.collection.Seq<Object> seq) {
        return new ArrayList<>(CollectionConverters.asJava(seq));
    }

    private static <K, V> Map<K, V> javaMap(scala.collection.Map<K, V> map) {
        return new LinkedHashMap<>(CollectionConverters.asJava(map));
    }
}
