import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.tools.DumpLogSegments;

/**
 * Opens logs of the quorum with Kafka's code, until its input ends. A line is a command, its answer is one line:
 *
 *   open FOLDER SEGMENT_BYTES              opens the log, which recovers it, and closes it: "start end lastEpoch [snapshot ids]"
 *   write FOLDER SEGMENT_BYTES FILE        the same after each batch in FILE was appended
 *   truncate FOLDER SEGMENT_BYTES OFFSET   the same after a truncation
 *   dump ARGUMENT ...                      DumpLogSegments: what it prints, with "\n" for the end of a line
 */
public final class LogJudge {
    private static final PrintStream ANSWERS = System.out;

    public static void main(String[] args) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            String answer;
            try {
                answer = words[0].equals("dump") ? dump(line.substring(5).split(" ")) : log(words);
            } catch (Exception error) {
                answer = "error " + error;
            }
            ANSWERS.println(answer.replace("\n", "\\n"));
            ANSWERS.flush();
        }
    }

    private static String log(String[] words) throws Exception {
        File folder = new File(words[1]);
        AbstractConfig config = new AbstractConfig(
            MetadataLogConfig.CONFIG_DEF, Map.of(MetadataLogConfig.INTERNAL_METADATA_LOG_SEGMENT_BYTES_CONFIG, words[2]), false);
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        KafkaRaftLog log = KafkaRaftLog.createLog(
            new TopicPartition("__cluster_metadata", 0), Uuid.METADATA_TOPIC_ID, folder, Time.SYSTEM, scheduler,
            new MetadataLogConfig(config), 1);
        try {
            if (words[0].equals("write")) {
                ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(Path.of(words[3])));
                for (MutableRecordBatch batch : MemoryRecords.readableRecords(content).batches()) {
                    ByteBuffer one = ByteBuffer.allocate(batch.sizeInBytes());
                    batch.writeTo(one);
                    one.flip();
                    log.appendAsFollower(MemoryRecords.readableRecords(one), Integer.MAX_VALUE);
                }
                log.flush(true);
            } else if (words[0].equals("truncate")) {
                log.truncateTo(Long.parseLong(words[3]));
            }
            return log.startOffset() + " " + log.endOffset().offset() + " " + log.lastFetchedEpoch()
                + " " + log.earliestSnapshotId().map(id -> id.offset() + "-" + id.epoch()).orElse("none")
                + " " + log.latestSnapshotId().map(id -> id.offset() + "-" + id.epoch()).orElse("none");
        } finally {
            log.close();
            scheduler.shutdown();
        }
    }

    private static String dump(String[] arguments) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream errors = System.err;
        System.setOut(new PrintStream(printed, true));
        System.setErr(System.out);
        try {
            DumpLogSegments.main(arguments);
        } finally {
            System.setErr(errors);
        }
        return printed.toString();
    }
}
