import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/**
 * What kafka-reassign-partitions --generate works out, timed by the JVM's clock.
 *
 * Arguments: "generate" TOPICS PARTITIONS-OF-EACH ADDED DRAINED. First line out: the number of replicas that --generate moves.
 * Then, for each line in, a number of runs, the nanoseconds of one of them.
 */
public final class PlacementPeer {
    interface Work {
        /** Does it and returns the figure of the answer, or what keeps the compiler from leaving the work out. */
        long run(boolean figure) throws Exception;
    }

    private static final int BROKERS = 100;
    private static final int FACTOR = 3;
    private static long sink;

    public static void main(String[] arguments) throws Exception {
        int[] numbers = new int[arguments.length];
        for (int place = 1; place < arguments.length; place++)
            numbers[place] = Integer.parseInt(arguments[place]);
        Work work = generate(numbers[1], numbers[2], numbers[3], numbers[4]);
        System.out.println(work.run(true));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String runs = in.readLine(); runs != null; runs = in.readLine()) {
            long started = System.nanoTime();
            for (int run = 0; run < Integer.parseInt(runs); run++)
                sink += work.run(false);
            System.out.println((System.nanoTime() - started) / Integer.parseInt(runs));
        }
        if (sink == 42)
            System.err.println("never: this only keeps the compiler from leaving the work out");
    }

    /** Topics as AdminUtils places them on the brokers at first; the proposal is for those that stay and those added. */
    private static Work generate(int topics, int partitions, int added, int drained) throws Exception {
        List<BrokerMetadata> present = new ArrayList<>(), staying = new ArrayList<>();
        for (int id = 0; id < BROKERS + added; id++) {
            BrokerMetadata broker = new BrokerMetadata(id, Optional.empty());
            if (id < BROKERS)
                present.add(broker);
            if (id >= drained)
                staying.add(broker);
        }
        Map<TopicPartition, List<Integer>> now = new HashMap<>();
        for (int topic = 0; topic < topics; topic++) {
            String name = "topic-" + topic;
            AdminUtils.assignReplicasToBrokers(present, partitions, FACTOR, topic % BROKERS, 0)
                .forEach((partition, replicas) -> now.put(new TopicPartition(name, partition), replicas));
        }
        Method calculate = ReassignPartitionsCommand.class.getDeclaredMethod("calculateAssignment", Map.class, List.class);
        calculate.setAccessible(true);
        return figure -> {
            @SuppressWarnings("unchecked")
            Map<TopicPartition, List<Integer>> proposed = (Map<TopicPartition, List<Integer>>) calculate.invoke(null, now, staying);
            if (!figure)
                return proposed.size();
            long moves = 0;
            for (Map.Entry<TopicPartition, List<Integer>> each : proposed.entrySet())
                for (Integer broker : each.getValue())
                    if (!now.get(each.getKey()).contains(broker))
                        moves++;
            return moves;
        };
    }
}
