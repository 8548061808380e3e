import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Runs partitions' logs of a broker with Kafka's UnifiedLog, until its input ends. A line is a JSON object, its answer is one line of JSON.
 *
 * A question has the folder, the topic's configuration, the clock, the checkpoints with which the log is opened, and steps: each is a list
 * of a name and arguments. The answer has the result of each step and the state at the end; then the log is closed.
 */
public final class PartitionJudge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int EXPIRATION_MS = 86_400_000;
    private static final int TRANSACTION_TIMEOUT_MS = 900_000;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            ObjectNode answer;
            try {
                answer = answer(JSON.readTree(line));
            } catch (Exception error) {
                answer = failure(error);
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
    }

    private static ObjectNode answer(JsonNode question) throws Exception {
        Properties config = new Properties();
        question.get("config").properties().forEach(each -> config.put(each.getKey(), each.getValue().asText()));
        Tasks tasks = new Tasks();
        Clock clock = new Clock(question.get("now_ms").asLong());
        UnifiedLog log = UnifiedLog.create(
            new File(question.get("folder").asText()), new LogConfig(config),
            question.get("log_start_offset").asLong(), question.get("recovery_point").asLong(),
            tasks, new BrokerTopicStats(), clock, TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(EXPIRATION_MS, false), Integer.MAX_VALUE, new LogDirFailureChannel(1),
            question.get("clean").asBoolean(), Optional.empty());
        try {
            ObjectNode answer = JSON.createObjectNode();
            ArrayNode results = answer.putArray("results");
            for (JsonNode step : question.get("steps")) {
                ObjectNode result;
                try {
                    result = step(log, step, clock, tasks);
                } catch (Exception error) {
                    result = failure(error);
                }
                results.add(result);
            }
            state(log, answer);
            return answer;
        } finally {
            log.close();
        }
    }

    private static ObjectNode step(UnifiedLog log, JsonNode step, Clock clock, Tasks tasks) throws Exception {
        ObjectNode result = JSON.createObjectNode();
        switch (step.get(0).asText()) {
            case "follow" -> appended(result, log.appendAsFollower(records(step.get(1)), step.get(2).asInt()));
            case "lead" -> appended(result, log.appendAsLeader(
                records(step.get(1)), step.get(2).asInt(), AppendOrigin.valueOf(step.get(3).asText()),
                RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) step.get(4).asInt()));
            case "truncate" -> log.truncateTo(step.get(1).asLong());
            case "roll" -> log.roll();
            case "flush" -> log.flush(false);
            case "high_watermark" -> log.updateHighWatermark(step.get(1).asLong());
            case "start_offset" -> result.put(
                "moved", log.maybeIncrementLogStartOffset(step.get(1).asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion));
            case "delete_old" -> result.put("deleted", log.deleteOldSegments());
            case "run_deletions" -> tasks.run();
            case "time" -> clock.now = step.get(1).asLong();
            case "clean" -> {
                Cleaner cleaner = new Cleaner(
                    0, new SkimpyOffsetMap(step.get(2).asInt()), 65_536, 1_048_576, 0.9, new Throttler(1e12, 1_000, "throttler", "bytes", clock),
                    clock, partition -> { });
                long uncleanable = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
                LogToClean cleanable = new LogToClean(log, step.get(1).asLong(), uncleanable, false);
                result.put("end_offset", cleaner.clean(cleanable).getKey());
            }
            case "dirty" -> dirtyPart(result, log, step.get(1).asLong(), clock.milliseconds());
            case "expire" -> log.producerStateManager().removeExpiredProducers(clock.milliseconds());
            case "state" -> state(log, result);
            case "aborted" -> {
                ArrayNode list = result.putArray("aborted");
                log.collectAbortedTransactions(step.get(1).asLong(), step.get(2).asLong()).forEach(each ->
                    list.addArray().add(each.producerId()).add(each.firstOffset()).add(each.lastOffset()).add(each.lastStableOffset()));
            }
            default -> throw new IllegalArgumentException("unknown step " + step);
        }
        return result;
    }

    /** The part that Kafka's cleaner would compact. Its decisions are not public. */
    private static void dirtyPart(ObjectNode result, UnifiedLog log, long cleanedOffset, long now) throws Exception {
        Method offsets = LogCleanerManager.class.getDeclaredMethod("cleanableOffsets", UnifiedLog.class, Optional.class, long.class);
        offsets.setAccessible(true);
        Object found = offsets.invoke(null, log, Optional.of(cleanedOffset), now);
        long first = component(found, "firstDirtyOffset");
        Method delay = LogCleanerManager.class.getDeclaredMethod("maxCompactionDelay", UnifiedLog.class, long.class, long.class);
        delay.setAccessible(true);
        LogToClean cleanable = new LogToClean(log, first, component(found, "firstUncleanableDirtyOffset"), false);
        result.put("first", first).put("end", cleanable.firstUncleanableOffset());
        result.put("clean_bytes", cleanable.cleanBytes()).put("dirty_bytes", cleanable.cleanableBytes());
        result.put("is_overdue", (long) delay.invoke(null, log, first, now) > 0);
    }

    private static long component(Object record, String name) throws Exception {
        Method method = record.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return (long) method.invoke(record);
    }

    private static void appended(ObjectNode result, LogAppendInfo info) {
        result.put("first_offset", info.firstOffset()).put("last_offset", info.lastOffset());
    }

    private static void state(UnifiedLog log, ObjectNode answer) {
        answer.put("start_offset", log.logStartOffset()).put("end_offset", log.logEndOffset());
        answer.put("recovery_point", log.recoveryPoint());
        answer.put("first_unstable_offset", log.producerStateManager().firstUnstableOffset().map(each -> each.messageOffset).orElse(null));
        ArrayNode segments = answer.putArray("segments");
        log.logSegments().stream().mapToLong(LogSegment::baseOffset).forEach(segments::add);
        ArrayNode producers = answer.putArray("producers");
        log.producerStateManager().activeProducers().values().stream().sorted((one, other) -> Long.compare(one.producerId(), other.producerId()))
            .forEach(each -> producer(producers.addObject(), each));
    }

    private static void producer(ObjectNode answer, ProducerStateEntry entry) {
        answer.put("producer_id", entry.producerId()).put("epoch", entry.producerEpoch()).put("coordinator_epoch", entry.coordinatorEpoch());
        answer.put("last_timestamp_ms", entry.lastTimestamp());
        answer.put("transaction_first_offset", entry.currentTxnFirstOffset().isPresent() ? entry.currentTxnFirstOffset().getAsLong() : null);
        ArrayNode batches = answer.putArray("batches");
        for (BatchMetadata each : entry.batchMetadata()) {
            batches.addArray().add(each.lastSeq()).add(each.lastOffset()).add(each.offsetDelta()).add(each.timestamp());
        }
    }

    private static ObjectNode failure(Exception error) {
        ObjectNode answer = JSON.createObjectNode();
        Throwable cause = error instanceof RecordValidationException invalid ? invalid.invalidException() : error;
        answer.put("error", Errors.forException(cause).name()).put("message", error.toString());
        if (error instanceof RecordValidationException invalid) {
            ArrayNode indexes = answer.putArray("record_errors");
            invalid.recordErrors().forEach(each -> indexes.add(each.batchIndex));
        }
        return answer;
    }

    private static MemoryRecords records(JsonNode base64) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(base64.asText())));
    }

    /** A clock that stays where it is set. */
    private static final class Clock implements Time {
        long now;

        Clock(long now) {
            this.now = now;
        }

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long durationMs) {
            now += durationMs;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** Runs tasks without a delay at once, and the others on demand. */
    private static final class Tasks implements Scheduler {
        private final List<Runnable> delayed = new ArrayList<>();

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs >= 0) {
                return new Never();
            }
            if (delayMs == 0) {
                task.run();
            } else {
                delayed.add(task);
            }
            return new Never();
        }

        void run() {
            delayed.forEach(Runnable::run);
            delayed.clear();
        }

        @Override
        public void resizeThreadPool(int newSize) {
        }
    }

    /** The handle of a task that is not waited for. */
    private static final class Never extends CompletableFuture<Object> implements ScheduledFuture<Object> {
        @Override
        public long getDelay(TimeUnit unit) {
            return 0;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
