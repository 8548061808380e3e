import com.linkedin.cruisecontrol.monitor.sampling.aggregator.AggregatedMetricValues;
import com.linkedin.cruisecontrol.monitor.sampling.aggregator.MetricValues;
import com.linkedin.kafka.cruisecontrol.analyzer.AnalyzerUtils;
import com.linkedin.kafka.cruisecontrol.analyzer.OptimizationOptions;
import com.linkedin.kafka.cruisecontrol.analyzer.goals.Goal;
import com.linkedin.kafka.cruisecontrol.common.Resource;
import com.linkedin.kafka.cruisecontrol.config.BrokerCapacityInfo;
import com.linkedin.kafka.cruisecontrol.config.KafkaCruiseControlConfig;
import com.linkedin.kafka.cruisecontrol.executor.ExecutionProposal;
import com.linkedin.kafka.cruisecontrol.model.Broker;
import com.linkedin.kafka.cruisecontrol.model.ClusterModel;
import com.linkedin.kafka.cruisecontrol.model.ReplicaPlacementInfo;
import com.linkedin.kafka.cruisecontrol.monitor.ModelGeneration;
import com.linkedin.kafka.cruisecontrol.monitor.metricdefinition.KafkaMetricDef;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/**
 * Cruise Control's goals on the cluster of the planner's benchmark, once.
 *
 * Arguments: a file with the cluster, brokers, racks, replicas of a partition, partitions of a topic, the tolerance (0.05). The file has
 * for each partition, as Java writes them: its brokers (int, the leader first), and as doubles its MB, and KB/s in and out. One line out
 * for each figure, "name value": nanoseconds (of the goals and of making proposals of what they did), megabytes to copy, and the farthest
 * that any broker is from the mean of each resource; and "unreached GOAL" for what it could not do.
 */
public final class CruiseControlPeer {
    private static final String GOALS = "com.linkedin.kafka.cruisecontrol.analyzer.goals.";

    /** In the order of Cruise Control's defaults: those that Steward's planner optimizes. */
    private static final List<String> ASKED = List.of(
        "RackAwareGoal", "DiskUsageDistributionGoal", "NetworkInboundUsageDistributionGoal",
        "NetworkOutboundUsageDistributionGoal", "LeaderReplicaDistributionGoal");

    /** Never the limit, so that no goal moves anything for the sake of it. */
    private static final double CAPACITY_OF_MEAN = 10;

    /** No processor time is asked about, yet a leader that has none at all cannot be divided by it. */
    private static final double PROCESSOR = 1e-6;

    private final int brokers;
    private final int racks;
    private final ClusterModel model = new ClusterModel(new ModelGeneration(0, 0L), 1.0);
    private final Map<TopicPartition, Double> megabytes = new HashMap<>();

    private CruiseControlPeer(int brokers, int racks) {
        this.brokers = brokers;
        this.racks = racks;
    }

    public static void main(String[] arguments) throws Exception {
        CruiseControlPeer peer = new CruiseControlPeer(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
        peer.read(Path.of(arguments[0]), Integer.parseInt(arguments[3]), Integer.parseInt(arguments[4]));
        peer.plan(arguments[5]);
    }

    private void read(Path file, int replicas, int partitionsOfTopic) throws IOException {
        long bytesOfPartition = 4L * replicas + 8L * 3;
        int partitions = Math.toIntExact(Files.size(file) / bytesOfPartition);
        double[][] loads = new double[partitions][3];
        int[][] lists = new int[partitions][replicas];
        double[] all = new double[3];
        try (DataInputStream input = new DataInputStream(new BufferedInputStream(Files.newInputStream(file), 1 << 20))) {
            for (int partition = 0; partition < partitions; partition++) {
                for (int index = 0; index < replicas; index++) {
                    lists[partition][index] = input.readInt();
                }
                for (int kind = 0; kind < 3; kind++) {
                    loads[partition][kind] = input.readDouble();
                    all[kind] += loads[partition][kind] * (kind < 2 ? replicas : 1);
                }
            }
        }
        addBrokers(all);
        for (int partition = 0; partition < partitions; partition++) {
            String topic = "topic-" + partition / partitionsOfTopic;
            add(new TopicPartition(topic, partition % partitionsOfTopic), lists[partition], loads[partition]);
        }
    }

    private void addBrokers(double[] all) {
        double each = CAPACITY_OF_MEAN / brokers;
        Map<Resource, Double> capacity = Map.of(
            Resource.DISK, all[0] * each, Resource.NW_IN, all[1] * each, Resource.NW_OUT, all[2] * each, Resource.CPU, 100.0);
        for (int rack = 0; rack < racks; rack++) {
            model.createRack("rack-" + rack);
        }
        for (int broker = 0; broker < brokers; broker++) {
            model.createBroker(rack(broker), "host-" + broker, broker, new BrokerCapacityInfo(capacity), false);
        }
    }

    private void add(TopicPartition partition, int[] replicas, double[] load) {
        megabytes.put(partition, load[0]);
        for (int index = 0; index < replicas.length; index++) {
            int broker = replicas[index];
            boolean leads = index == 0;
            model.createReplica(rack(broker), broker, partition, index, leads);
            AggregatedMetricValues values = new AggregatedMetricValues();
            set(values, Resource.DISK, load[0]);
            set(values, Resource.NW_IN, load[1]);
            set(values, Resource.NW_OUT, leads ? load[2] : 0);
            set(values, Resource.CPU, PROCESSOR);
            model.setReplicaLoad(rack(broker), broker, partition, values, List.of(1L));
        }
    }

    /** A resource may be the sum of several metrics: the first has all of it. */
    private static void set(AggregatedMetricValues values, Resource resource, double value) {
        double rest = value;
        for (short id : KafkaMetricDef.resourceToMetricIds(resource)) {
            MetricValues one = new MetricValues(1);
            one.set(0, (float) rest);
            values.add(id, one);
            rest = 0;
        }
    }

    private void plan(String tolerance) throws Exception {
        List<Goal> goals = AnalyzerUtils.getDefaultGoalsByPriority(new KafkaCruiseControlConfig(settings(tolerance)));
        OptimizationOptions options = new OptimizationOptions(Set.of(), Set.of(), Set.of());
        Map<TopicPartition, List<ReplicaPlacementInfo>> replicas = model.getReplicaDistribution();
        Map<TopicPartition, ReplicaPlacementInfo> leaders = model.getLeaderDistribution();
        Set<Goal> done = new HashSet<>();
        Set<String> unreached = new HashSet<>();
        long started = System.nanoTime();
        for (Goal goal : goals) {
            if (!goal.optimize(model, done, options)) {
                unreached.add(goal.name());
            }
            done.add(goal);
        }
        Set<ExecutionProposal> proposals = AnalyzerUtils.getDiff(replicas, leaders, model, true);
        System.out.println("nanoseconds " + (System.nanoTime() - started));
        double copied = proposals.stream()
            .mapToDouble(one -> one.replicasToAdd().size() * megabytes.get(one.topicPartition())).sum();
        System.out.println("megabytes " + copied);
        say("disk", broker -> broker.load().expectedUtilizationFor(Resource.DISK));
        say("bytes-in", broker -> broker.load().expectedUtilizationFor(Resource.NW_IN));
        say("bytes-out", broker -> broker.load().expectedUtilizationFor(Resource.NW_OUT));
        say("leaders", broker -> broker.leaderReplicas().size());
        unreached.forEach(goal -> System.out.println("unreached " + goal));
    }

    private void say(String resource, ToDoubleFunction<Broker> load) {
        double mean = model.brokers().stream().mapToDouble(load).average().orElseThrow();
        ToDoubleFunction<Broker> away = broker -> Math.abs(load.applyAsDouble(broker) / mean - 1);
        double farthest = model.brokers().stream().mapToDouble(away).max().orElseThrow();
        System.out.println(resource + " " + farthest);
    }

    private static Properties settings(String tolerance) {
        String threshold = String.valueOf(1 + Double.parseDouble(tolerance));
        String asked = ASKED.stream().map(goal -> GOALS + goal).collect(Collectors.joining(","));
        Properties settings = new Properties();
        settings.setProperty("bootstrap.servers", "localhost:9092");
        settings.setProperty("default.goals", asked);
        settings.setProperty("hard.goals", GOALS + ASKED.get(0));
        settings.setProperty("anomaly.detection.goals", asked);
        settings.setProperty("self.healing.goals", "");
        for (String kind : List.of("disk", "network.inbound", "network.outbound", "leader.replica.count")) {
            settings.setProperty(kind + ".balance.threshold", threshold);
        }
        return settings;
    }

    private String rack(int broker) {
        return "rack-" + broker % racks;
    }
}
