import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Answers what Kafka's KRaft controller decides: {"ask": WHAT, "cases": [...]} in, a list of answers out, one line each.
 */
public final class KraftJudge {
    private static final Uuid TOPIC = Uuid.fromString("AAAAAAAAAAAAAAAAAAAAZQ");

    interface Question {
        Object answer(JsonNode one);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Question> questions = Map.of("change", KraftJudge::change, "place", KraftJudge::place);
        ObjectMapper mapper = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = mapper.readTree(line);
            Question question = questions.get(request.get("ask").asText());
            List<Object> answers = new ArrayList<>();
            for (JsonNode one : request.get("cases")) {
                try {
                    answers.add(question.answer(one));
                } catch (RuntimeException error) {
                    answers.add(Map.of("refused", String.valueOf(error.getMessage())));
                }
            }
            out.println(mapper.writeValueAsString(answers));
        }
    }

    /** The partition after PartitionChangeBuilder's record; null if it writes none. */
    private static Object change(JsonNode one) {
        int[] replicas = Replicas.toArray(ids(one.get("replicas")));
        PartitionRegistration before = new PartitionRegistration.Builder().
            setReplicas(replicas).
            setDirectories(Uuid.toArray(directories(one.get("directories")))).
            setIsr(Replicas.toArray(ids(one.get("isr")))).
            setElr(Replicas.toArray(ids(one.get("elr")))).
            setLastKnownElr(Replicas.toArray(ids(one.get("last_known")))).
            setRemovingReplicas(Replicas.toArray(ids(one.get("removing")))).
            setAddingReplicas(Replicas.toArray(ids(one.get("adding")))).
            setLeader(one.get("leader").asInt()).
            setLeaderRecoveryState(LeaderRecoveryState.of((byte) one.get("recovering").asInt())).
            setLeaderEpoch(one.get("leader_epoch").asInt()).
            setPartitionEpoch(one.get("partition_epoch").asInt()).
            build();
        Set<Integer> acceptable = new HashSet<>(ids(one.get("acceptable")));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            before, TOPIC, 0, acceptable::contains, MetadataVersion.fromFeatureLevel((short) one.get("version").asInt()),
            one.get("min_isr").asInt(), one.get("elr_enabled").asBoolean());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(one.get("election").asText()));
        builder.setTargetIsr(ids(one.get("target_isr")));
        builder.setDefaultDirProvider(broker -> new Uuid(1, broker));
        if (one.has("target_replicas")) {
            builder.setTargetReplicas(ids(one.get("target_replicas")));
            builder.setTargetRemoving(ids(one.get("target_removing")));
            builder.setTargetAdding(ids(one.get("target_adding")));
        }
        if (one.has("target_recovering"))
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) one.get("target_recovering").asInt()));
        if (one.has("lost"))
            builder.setUncleanShutdownReplicas(ids(one.get("lost")));
        if (one.has("directory"))
            builder.setDirectory(one.get("directory").get(0).asInt(), new Uuid(2, one.get("directory").get(1).asInt()));
        Optional<ApiMessageAndVersion> record = builder.build();
        if (record.isEmpty()) return null;
        PartitionRegistration after = before.merge((PartitionChangeRecord) record.get().message());
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("leader", after.leader);
        answer.put("leader_epoch", after.leaderEpoch);
        answer.put("partition_epoch", after.partitionEpoch);
        answer.put("isr", after.isr);
        answer.put("elr", after.elr);
        answer.put("last_known", after.lastKnownElr);
        answer.put("replicas", after.replicas);
        answer.put("removing", after.removingReplicas);
        answer.put("adding", after.addingReplicas);
        answer.put("recovering", after.leaderRecoveryState.value());
        List<List<Long>> directories = new ArrayList<>();
        for (Uuid directory : after.directories)
            directories.add(List.of(directory.getMostSignificantBits(), directory.getLeastSignificantBits()));
        answer.put("directories", directories);
        return answer;
    }

    /** The replicas of StripedReplicaPlacer with java.util.Random of this seed. */
    private static Object place(JsonNode one) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (JsonNode broker : one.get("brokers"))
            brokers.add(new UsableBroker(broker.get("id").asInt(), Optional.ofNullable(broker.get("rack").textValue()),
                broker.get("fenced").asBoolean()));
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return TOPIC;
            }
        };
        List<List<Integer>> placed = new ArrayList<>();
        for (PartitionAssignment assignment : new StripedReplicaPlacer(new Random(one.get("seed").asLong())).place(
                new PlacementSpec(0, one.get("partitions").asInt(), (short) one.get("factor").asInt()), cluster).assignments())
            placed.add(assignment.replicas());
        return placed;
    }

    private static List<Integer> ids(JsonNode list) {
        List<Integer> ids = new ArrayList<>();
        for (JsonNode id : list) ids.add(id.asInt());
        return ids;
    }

    private static List<Uuid> directories(JsonNode list) {
        List<Uuid> directories = new ArrayList<>();
        for (JsonNode directory : list)
            directories.add(new Uuid(directory.get(0).asLong(), directory.get(1).asLong()));
        return directories;
    }
}
