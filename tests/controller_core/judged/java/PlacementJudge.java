import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Answers where KRaft's StripedReplicaPlacer puts partitions. One line of JSON in, a list of cases with "brokers" (pairs of id and
 * rack), "partitions", "factor" and "seed"; one line out, a list with the replicas of each case. It ends when its input does.
 */
public final class PlacementJudge {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<Object> answers = new ArrayList<>();
            for (JsonNode one : mapper.readTree(line))
                answers.add(place(one));
            out.println(mapper.writeValueAsString(answers));
        }
    }

    private static List<List<Integer>> place(JsonNode one) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (JsonNode pair : one.get("brokers"))
            brokers.add(new UsableBroker(pair.get(0).asInt(), Optional.ofNullable(pair.get(1).textValue()), false));
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return Uuid.ZERO_UUID;
            }
        };
        PlacementSpec asked = new PlacementSpec(0, one.get("partitions").asInt(), (short) one.get("factor").asInt());
        return new StripedReplicaPlacer(new Random(one.get("seed").asLong())).place(asked, cluster)
            .assignments().stream().map(PartitionAssignment::replicas).collect(Collectors.toList());
    }
}
