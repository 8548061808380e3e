import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import kafka.log.LogManager;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.apache.kafka.tools.DumpLogSegments;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Opens the log directories of a broker with Kafka's LogManager, until its input ends. A line is a JSON object, its answer is one line of JSON.
 *
 * A question has a broker's properties, the broker epoch with which it is shut down, and steps on partitions:
 * "create" TOPIC PARTITION ID, "append" TOPIC PARTITION BATCH, "high_watermark" TOPIC PARTITION OFFSET, "start_offset" TOPIC PARTITION OFFSET.
 * The answer has the last broker epoch, and each log's start, end and folder. A question with "dump" has the arguments of DumpLogSegments.
 */
public final class LogManagerJudge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream ANSWERS = System.out;

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode question = JSON.readTree(line);
                if (question.has("dump")) {
                    answer.put("dump", dump(question.get("dump")));
                } else {
                    manage(question, answer);
                }
            } catch (Exception error) {
                answer.put("error", error.toString());
            }
            ANSWERS.println(JSON.writeValueAsString(answer));
            ANSWERS.flush();
        }
    }

    private static void manage(JsonNode question, ObjectNode answer) throws Exception {
        Properties properties = new Properties();
        question.get("config").properties().forEach(each -> properties.put(each.getKey(), each.getValue().asText()));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        ConfigRepository configs = new ConfigRepository() {
            @Override
            public Properties config(ConfigResource resource) {
                return new Properties();
            }
        };
        LogManager logs = LogManager.apply(
            new KafkaConfig(properties), CollectionConverters.<String>asScala(List.of()).toSeq(), configs, scheduler, Time.SYSTEM,
            new BrokerTopicStats(), new LogDirFailureChannel(4));
        answer.put("broker_epoch", logs.readBrokerEpochFromCleanShutdownFiles().orElse(-1));
        logs.startup(CollectionConverters.<String>asScala(java.util.Set.of()).toSet(), log -> false);
        try {
            for (JsonNode step : question.get("steps")) {
                TopicPartition partition = new TopicPartition(step.get(1).asText(), step.get(2).asInt());
                step(logs, step, partition);
            }
            ObjectNode found = answer.putObject("logs");
            for (UnifiedLog log : CollectionConverters.asJava(logs.allLogs())) {
                found.putObject(log.topicPartition().toString())
                    .put("start_offset", log.logStartOffset()).put("end_offset", log.logEndOffset())
                    .put("topic_id", log.topicId().map(Uuid::toString).orElse(null))
                    .put("directory", log.parentDir());
            }
        } finally {
            logs.shutdown(question.get("broker_epoch").asLong());
            scheduler.shutdown();
        }
    }

    private static void step(LogManager logs, JsonNode step, TopicPartition partition) throws Exception {
        if (step.get(0).asText().equals("create")) {
            logs.getOrCreateLog(
                partition, true, false, Optional.of(Uuid.fromString(step.get(3).asText())), scala.Option.empty());
            return;
        }
        UnifiedLog log = logs.getLog(partition, false).get();
        switch (step.get(0).asText()) {
            case "append" -> log.appendAsLeader(
                MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(step.get(3).asText()))), 0);
            case "high_watermark" -> log.updateHighWatermark(step.get(3).asLong());
            case "start_offset" -> log.maybeIncrementLogStartOffset(
                step.get(3).asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            default -> throw new IllegalArgumentException("unknown step " + step);
        }
    }

    private static String dump(JsonNode arguments) throws Exception {
        List<String> words = new ArrayList<>();
        arguments.forEach(each -> words.add(each.asText()));
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true));
        DumpLogSegments.main(words.toArray(new String[0]));
        return printed.toString();
    }
}
