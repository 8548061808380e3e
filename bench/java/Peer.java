import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.zip.CRC32;

import kafka.api.LeaderAndIsr;
import kafka.cluster.Broker;
import kafka.cluster.EndPoint;
import kafka.controller.ControllerContext;
import kafka.controller.Election;
import kafka.controller.PartitionLeaderElectionAlgorithms;
import kafka.controller.ReplicaAssignment;

import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.LeaderAndIsrRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Set;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Kafka's own classes at the work that a benchmark names, timed by the JVM's clock.
 *
 * Arguments: what to do, then its numbers. First line out: a checksum of the answer, so that both sides are known to do the same.
 * Then, for each line in, a number of runs, the nanoseconds of one of them. With "once" in front of the arguments: one run, the
 * first of this JVM, and its nanoseconds.
 */
public final class Peer {
    interface Work {
        /** Does it and returns something that depends on all of the answer, cheaply. */
        long run();

        /** Does it and sums the answer up as the Python side does. */
        default long checksum() {
            return run();
        }
    }

    private static long sink;

    public static void main(String[] arguments) throws Exception {
        boolean once = arguments[0].equals("once");
        Work work = work(once ? List.of(arguments).subList(1, arguments.length) : List.of(arguments));
        if (once) {
            System.out.println(nanoseconds(work, 1));
            return;
        }
        System.out.println(work.checksum());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String runs = in.readLine(); runs != null; runs = in.readLine())
            System.out.println(nanoseconds(work, Integer.parseInt(runs)));
        if (sink == 42)
            System.err.println("never: this only keeps the compiler from leaving the work out");
    }

    private static long nanoseconds(Work work, int runs) {
        long started = System.nanoTime();
        for (int run = 0; run < runs; run++)
            sink += work.run();
        return (System.nanoTime() - started) / runs;
    }

    private static Work work(List<String> words) {
        int number = Integer.parseInt(words.get(1));
        switch (words.get(0)) {
            case "place": return placement(number, Integer.parseInt(words.get(2)), Integer.parseInt(words.get(3)));
            case "choose": return choice(words.get(2), rows(number), Integer.parseInt(words.get(3)));
            case "elect": return election(words.get(2), rows(number), Integer.parseInt(words.get(3)));
            case "encode": return encoding(number);
            default: throw new IllegalArgumentException("no work " + words);
        }
    }

    private static final int BROKERS = 100;
    private static final int FACTOR = 3;

    /** AdminUtils.assignReplicasToBrokers; "racks" is 0 for brokers without one. */
    private static Work placement(int partitions, int racks, int start) {
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (int id = 0; id < BROKERS; id++)
            brokers.add(new BrokerMetadata(id, racks == 0 ? Optional.empty() : Optional.of("rack-" + id % racks)));
        return new Work() {
            @Override
            public long run() {
                return AdminUtils.assignReplicasToBrokers(brokers, partitions, FACTOR, start, 0).size();
            }

            @Override
            public long checksum() {
                Map<Integer, List<Integer>> placed = AdminUtils.assignReplicasToBrokers(brokers, partitions, FACTOR, start, 0);
                long sum = 0;
                for (int partition = 0; partition < partitions; partition++)
                    for (int place = 0; place < FACTOR; place++)
                        sum += (long) placed.get(partition).get(place) * (place + 1) * (partition % 1009 + 1);
                return sum;
            }
        };
    }

    /** Partitions as AdminUtils places them (start 0), each with all replicas in sync; the first replica leads. */
    private static List<Seq<Object>> rows(int partitions) {
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (int id = 0; id < BROKERS; id++)
            brokers.add(new BrokerMetadata(id, Optional.empty()));
        Map<Integer, List<Integer>> placed = AdminUtils.assignReplicasToBrokers(brokers, partitions, FACTOR, 0, 0);
        List<Seq<Object>> rows = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++)
            rows.add(CollectionConverters.asScala(new ArrayList<Object>(placed.get(partition))).toList());
        return rows;
    }

    private static Set<Object> idsWithout(int gone) {
        List<Object> ids = new ArrayList<>();
        for (int id = 0; id < BROKERS; id++)
            if (id != gone)
                ids.add(id);
        return CollectionConverters.asScala(ids).toSet();
    }

    /** PartitionLeaderElectionAlgorithms: only the leader, partition by partition. */
    private static Work choice(String selector, List<Seq<Object>> rows, int gone) {
        Set<Object> live = idsWithout(gone), all = idsWithout(-1);
        Set<Object> leaving = CollectionConverters.asScala(new ArrayList<Object>(List.of(gone))).toSet();
        ControllerContext context = new ControllerContext();
        return () -> {
            long sum = 0;
            for (Seq<Object> row : rows) {
                Option<Object> leader;
                switch (selector) {
                    case "offline":
                        leader = PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection(row, row, live, false, context);
                        break;
                    case "preferred":
                        leader = PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection(row, row, live);
                        break;
                    case "shutdown":
                        leader = PartitionLeaderElectionAlgorithms.controlledShutdownPartitionLeaderElection(row, row, all, leaving);
                        break;
                    default: throw new IllegalArgumentException("no selector " + selector);
                }
                sum += leader.isEmpty() ? -1 : (Integer) leader.get();
            }
            return sum;
        };
    }

    /** Election: leader, ISR and receivers of all partitions, as the controller asks for them. */
    private static Work election(String selector, List<Seq<Object>> rows, int gone) {
        ControllerContext context = context(rows, gone, selector.equals("shutdown"));
        List<Tuple2<TopicPartition, LeaderAndIsr>> partitions = new ArrayList<>();
        List<Tuple3<TopicPartition, Option<LeaderAndIsr>, Object>> offline = new ArrayList<>();
        for (int partition = 0; partition < rows.size(); partition++) {
            TopicPartition name = new TopicPartition("measured", partition);
            Seq<Object> row = rows.get(partition);
            // A preferred election of what is led by its first replica already is never asked for.
            Object leader = selector.equals("preferred") ? row.apply(1) : row.head();
            LeaderAndIsr now = LeaderAndIsr.apply((Integer) leader, row.toList());
            partitions.add(new Tuple2<>(name, now));
            offline.add(new Tuple3<>(name, Some.apply(now), false));
        }
        scala.collection.Seq<Tuple2<TopicPartition, LeaderAndIsr>> asked = CollectionConverters.asScala(partitions);
        scala.collection.Seq<Tuple3<TopicPartition, Option<LeaderAndIsr>, Object>> askedOffline = CollectionConverters.asScala(offline);
        switch (selector) {
            case "offline": return () -> leaders(Election.leaderForOffline(context, true, askedOffline));
            case "preferred": return () -> leaders(Election.leaderForPreferredReplica(context, asked));
            case "shutdown": return () -> leaders(Election.leaderForControlledShutdown(context, asked));
            default: throw new IllegalArgumentException("no selector " + selector);
        }
    }

    private static long leaders(scala.collection.Seq<kafka.controller.ElectionResult> results) {
        long sum = 0;
        for (scala.collection.Iterator<kafka.controller.ElectionResult> each = results.iterator(); each.hasNext();) {
            Option<LeaderAndIsr> elected = each.next().leaderAndIsr();
            sum += elected.isEmpty() ? -1 : elected.get().leader();
        }
        return sum;
    }

    private static ControllerContext context(List<Seq<Object>> rows, int gone, boolean shuttingDown) {
        ControllerContext context = new ControllerContext();
        Map<Broker, Object> live = new HashMap<>();
        scala.collection.Seq<EndPoint> nowhere = CollectionConverters.asScala(new ArrayList<EndPoint>());
        for (int id = 0; id < BROKERS; id++)
            if (id != gone || shuttingDown)
                live.put(Broker.apply(id, nowhere, Option.empty()), 0L);
        context.setLiveBrokers(CollectionConverters.asScala(live));
        if (shuttingDown)
            context.shuttingDownBrokerIds().add(gone);
        for (int partition = 0; partition < rows.size(); partition++)
            context.updatePartitionFullReplicaAssignment(
                new TopicPartition("measured", partition), ReplicaAssignment.apply(rows.get(partition)));
        return context;
    }

    /** LeaderAndIsr 7 of one topic, written from its data object; the checksum is that of the bytes. */
    private static Work encoding(int partitions) {
        LeaderAndIsrRequestData data = request(partitions);
        short version = 7;
        return new Work() {
            private ByteBuffer written() {
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer bytes = ByteBuffer.allocate(data.size(cache, version));
                data.write(new ByteBufferAccessor(bytes), cache, version);
                return bytes;
            }

            @Override
            public long run() {
                return written().position();
            }

            @Override
            public long checksum() {
                CRC32 sum = new CRC32();
                sum.update(written().flip());
                return sum.getValue();
            }
        };
    }

    private static LeaderAndIsrRequestData request(int partitions) {
        List<LeaderAndIsrRequestData.LeaderAndIsrPartitionState> states = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            List<Integer> replicas = List.of(partition % 4 + 1, (partition + 1) % 4 + 1, (partition + 2) % 4 + 1);
            states.add(new LeaderAndIsrRequestData.LeaderAndIsrPartitionState()
                .setPartitionIndex(partition).setControllerEpoch(7).setLeader(replicas.get(0)).setLeaderEpoch(partition + 3)
                .setIsr(replicas).setPartitionEpoch(partition + 5).setReplicas(replicas));
        }
        List<LeaderAndIsrRequestData.LeaderAndIsrLiveLeader> leaders = new ArrayList<>();
        for (int id = 1; id <= 4; id++)
            leaders.add(new LeaderAndIsrRequestData.LeaderAndIsrLiveLeader()
                .setBrokerId(id).setHostName("broker-" + id + ".kafka.example").setPort(9092));
        LeaderAndIsrRequestData.LeaderAndIsrTopicState topic = new LeaderAndIsrRequestData.LeaderAndIsrTopicState()
            .setTopicName("measured").setTopicId(new Uuid(1, 2)).setPartitionStates(states);
        return new LeaderAndIsrRequestData()
            .setControllerId(1000).setControllerEpoch(7).setBrokerEpoch(42).setType((byte) 0)
            .setTopicStates(List.of(topic)).setLiveLeaders(leaders);
    }
}
