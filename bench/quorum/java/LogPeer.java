import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.util.KafkaScheduler;

/**
 * Opens a log of the quorum as a controller does when it starts, timed by the JVM's clock.
 *
 * Argument: the log's folder. First line out: the log's end offset. Then, for each line in, the nanoseconds of one opening.
 */
public final class LogPeer {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        MetadataLogConfig config = new MetadataLogConfig(new AbstractConfig(MetadataLogConfig.CONFIG_DEF, Map.of(), false));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        try (KafkaRaftLog log = open(folder, scheduler, config)) {
            System.out.println(log.endOffset().offset());
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            long started = System.nanoTime();
            KafkaRaftLog log = open(folder, scheduler, config);
            System.out.println(System.nanoTime() - started);
            log.close();
        }
        scheduler.shutdown();
    }

    private static KafkaRaftLog open(File folder, KafkaScheduler scheduler, MetadataLogConfig config) throws Exception {
        return KafkaRaftLog.createLog(
            new TopicPartition("__cluster_metadata", 0), Uuid.METADATA_TOPIC_ID, folder, Time.SYSTEM, scheduler, config, 1);
    }
}
